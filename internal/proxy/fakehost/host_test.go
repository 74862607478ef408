package fakehost

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

func TestLedgerKeepsTheOrder(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	w.must(w.Mkdir(ctx, w.path("a")))
	_ = w.Rmdir(ctx, w.path("full"), false)
	w.must(w.Rmdir(ctx, w.path("a"), true))
	want := []Entry{
		{Op: "Mkdir", Args: []string{root + `\a`}, Changed: true},
		{Op: "Rmdir", Args: []string{root + `\full`, "false"}, Err: `remove C:\var\lib\kubelet\full: the directory is not empty: file already exists`},
		{Op: "Rmdir", Args: []string{root + `\a`, "true"}, Changed: true},
	}
	got := w.Ledger()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("ledger (-want +got):\n%s", diff)
	}
	got[0].Args[0] = "forged"
	if w.Ledger()[0].Args[0] == "forged" {
		t.Error("a reader of the ledger can change it")
	}
}

func TestFaultStopsAnOperationBeforeItBegins(t *testing.T) {
	broken := errors.New("broken")
	armed := false
	w := newWorld(t, func(o *Options) {
		o.Fault = func(op string, args ...string) error {
			if armed && op == "Mkdir" && args[0] == root+`\x` {
				return broken
			}
			return nil
		}
	})
	armed = true
	if err := w.Mkdir(t.Context(), w.path("x")); !errors.Is(err, broken) {
		t.Fatalf("error = %v", err)
	}
	if len(w.Ledger()) != 0 || w.exists("x") {
		t.Errorf("the operation was carried out: %+v", w.Ledger())
	}
}

func TestCancelledOperationsAreNotCarriedOut(t *testing.T) {
	blocked, release := make(chan string), make(chan struct{})
	armed := false
	w := newWorld(t, func(o *Options) {
		o.Block = func(_ context.Context, op string, _ ...string) {
			if armed {
				blocked <- op
				<-release
			}
		}
	})
	armed = true
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Mkdir(ctx, w.path("x")) }()
	if op := <-blocked; op != "Mkdir" {
		t.Errorf("blocked in %s", op)
	}
	cancel()
	close(release)
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	if err := w.Mkdir(ctx, w.path("y")); !errors.Is(err, context.Canceled) {
		t.Errorf("error of a call that was cancelled before it came = %v", err)
	}
	if got := w.Ledger(); len(got) != 0 {
		t.Errorf("ledger = %+v", got)
	}
}

func TestHostIsSafeForManyGoroutines(t *testing.T) {
	w := newWorld(t, nil)
	paths := make([]safepath.Path, 8)
	for i := range paths {
		paths[i] = w.path(fmt.Sprintf(`shared\p%d`, i))
	}
	var all sync.WaitGroup
	for _, p := range paths {
		all.Go(func() {
			for range 50 {
				if err := w.Mkdir(t.Context(), p); err != nil {
					t.Error(err)
				}
				if err := w.MountVolume(t.Context(), FormattedVolume, p, handler.Permits{}); err != nil {
					t.Error(err)
				}
				if err := w.UnmountVolume(t.Context(), FormattedVolume, p); err != nil {
					t.Error(err)
				}
				if _, err := w.IsSymlink(t.Context(), p); err != nil {
					t.Error(err)
				}
				if err := w.StartService(t.Context(), "MSiSCSI"); err != nil {
					t.Error(err)
				}
				if err := w.Rmdir(t.Context(), p, false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got, want := len(w.Ledger()), len(paths)*50*6; got != want {
		t.Errorf("the ledger has %d entries, want %d", got, want)
	}
}
