package policy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

type attempt struct {
	s   Snapshot
	err error
}

// watching starts Watch and returns what it tells. polled is for what notifications do not show.
func watching(t *testing.T, e *Engine, dir string, bind func(Modules) (Modules, error)) <-chan attempt {
	t.Helper()
	told := make(chan attempt, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Watch(ctx, dir, bind, func(s Snapshot, err error) { told <- attempt{s, err} }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return told
}

func next(t *testing.T, told <-chan attempt) attempt {
	t.Helper()
	select {
	case a := <-told:
		return a
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing was told")
		return attempt{}
	}
}

// until waits for an attempt that satisfies a condition; half-written states on the way to it are told as well.
func until(t *testing.T, told <-chan attempt, what string, ok func(attempt) bool) attempt {
	t.Helper()
	for range 50 {
		if a := next(t, told); ok(a) {
			return a
		}
	}
	t.Fatal("never told: " + what)
	return attempt{}
}

func refusal(a attempt) bool    { return a.err != nil }
func activation(a attempt) bool { return a.err == nil }

func watchEngine(t *testing.T, poll time.Duration) *Engine {
	t.Helper()
	e, err := New(Options{Timeout: 20 * time.Second, WatchPoll: poll, WatchSettle: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

const byNotification, byPoll = time.Hour, 20 * time.Millisecond

func TestWatchPicksUpAConfigMapSwap(t *testing.T) {
	dir := t.TempDir()
	configMap(t, dir, "1", small().Files)
	e := watchEngine(t, byNotification)
	told := watching(t, e, dir, nil)
	first := until(t, told, "the first", activation)

	changed := small()
	changed.Files["small.rego"] = strings.Replace(changed.Files["small.rego"], "Be good.", "Be better.", 1)
	configMap(t, dir, "2", changed.Files)
	second := until(t, told, "the second", activation)
	if r, _ := second.s.Rule("T001"); r.Remedy != "Be better." || first.s.Revision() == second.s.Revision() {
		t.Fatalf("got %+v", r)
	}
}

func TestWatchKeepsLastGoodThroughAHalfWrittenFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range small().Files {
		write(t, filepath.Join(dir, name), text)
	}
	e := watchEngine(t, byNotification)
	told := watching(t, e, dir, nil)
	good := until(t, told, "the first", activation)

	text := small().Files["small.rego"]
	write(t, filepath.Join(dir, "small.rego"), text[:len(text)-20])
	bad := until(t, told, "the half", refusal)
	wantError(t, bad.err, "small.rego:")
	if s, ok := e.Active(); !ok || s != good.s {
		t.Fatal("the policies before do not decide any more")
	}
	if d, err := e.Decide(t.Context(), ast.NewObject()); err != nil || !d.Allowed {
		t.Fatalf("got %+v, %v", d, err)
	}
	write(t, filepath.Join(dir, "small.rego"), text+"\n# whole again\n")
	if whole := until(t, told, "the whole", activation); whole.s.Revision() == good.s.Revision() {
		t.Fatal("the revision is the same")
	}
}

func TestWatchKeepsLastGoodThroughAMissingDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "policies")
	e := watchEngine(t, byPoll)
	told := watching(t, e, dir, nil)
	if a := next(t, told); !errors.Is(a.err, os.ErrNotExist) {
		t.Fatalf("got %v", a.err)
	}
	prepared := dir + ".next"
	for name, text := range small().Files {
		write(t, filepath.Join(prepared, name), text)
	}
	if err := os.Rename(prepared, dir); err != nil {
		t.Fatal(err)
	}
	good := until(t, told, "its appearance", activation)
	if err := os.Rename(dir, prepared); err != nil {
		t.Fatal(err)
	}
	until(t, told, "its disappearance", refusal)
	if s, _ := e.Active(); s != good.s {
		t.Fatal("the policies before do not decide any more")
	}
	write(t, filepath.Join(prepared, "more_test.rego"), "package more_test\n\ntest_more if true\n")
	if err := os.Rename(prepared, dir); err != nil {
		t.Fatal(err)
	}
	if a := until(t, told, "its return", activation); a.s.Tests() != 2 {
		t.Fatalf("%d tests", a.s.Tests())
	}
}

func TestWatchFollowsADirectoryThatIsReplacedAndItsSubdirectories(t *testing.T) {
	root := t.TempDir()
	link := filepath.Join(root, "current")
	for i := range 2 {
		m := small().with(map[string]string{"sub/n.rego": fmt.Sprintf("package n\n\nx := %d\n", i)})
		for name, text := range m.Files {
			write(t, filepath.Join(root, fmt.Sprint(i), name), text)
		}
	}
	if err := os.Symlink("0", link); err != nil {
		t.Fatal(err)
	}
	e := watchEngine(t, byPoll)
	told := watching(t, e, link, nil)
	until(t, told, "the first", activation)
	if err := os.Symlink("1", link+".next"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+".next", link); err != nil {
		t.Fatal(err)
	}
	until(t, told, "the second", activation)
	write(t, filepath.Join(root, "1", "sub", "m.rego"), "package m\n\ny := 1\n")
	until(t, told, "the file in a subdirectory", activation)
}

func TestWatchBindsTheFilesEachTime(t *testing.T) {
	dir := t.TempDir()
	for name, text := range small().Files {
		write(t, filepath.Join(dir, name), text)
	}
	var calls atomic.Int64
	bind := func(m Modules) (Modules, error) {
		if n := calls.Add(1); n > 1 && n < 4 {
			return Modules{}, errors.New("not now")
		}
		return m.WithData(map[string]any{"n": min(calls.Load(), 4)}), nil
	}
	e := watchEngine(t, byPoll)
	told := watching(t, e, dir, bind)
	first := until(t, told, "the first", activation)
	wantError(t, until(t, told, "the error", refusal).err, "bind policies: not now")
	if second := until(t, told, "the second", activation); second.s.Revision() == first.s.Revision() {
		t.Fatal("the data did not change the revision")
	}
}

// While a directory changes between two good states and through bad ones, every decision is the one of a good state, and
// of the state whose revision it carries.
func TestDecideNeverErrsDuringReloads(t *testing.T) {
	dir := t.TempDir()
	answer := func(n int) map[string]string {
		m := deciding(fmt.Sprintf(`{"allowed": input.n == %d, "findings": {{"code": "A%d", "effect": "audit"}}}`, n, n))
		return m.Files
	}
	configMap(t, dir, "g0", answer(0))
	e := watchEngine(t, byPoll)
	told := watching(t, e, dir, nil)
	codes := sync.Map{} // revision -> the only code it may answer with
	first := until(t, told, "the first", activation)
	codes.Store(first.s.Revision(), "A0")

	var decisions atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	inputs := [2]ast.Value{value(t, map[string]any{"n": 0}), value(t, map[string]any{"n": 1})}
	seen := make(chan Decision, 1<<20)
	for g := range 4 {
		wg.Go(func() {
			for i := g; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				d, err := e.Decide(context.Background(), inputs[i%2])
				if err != nil || len(d.Findings) != 1 {
					t.Errorf("got %+v, %v", d, err)
					return
				}
				if want := d.Findings[0].Code == fmt.Sprintf("A%d", i%2); d.Allowed != want {
					t.Errorf("a mixture of two revisions: %+v", d)
					return
				}
				decisions.Add(1)
				select {
				case seen <- d:
				default:
				}
			}
		})
	}
	for i := 1; i <= 20; i++ {
		configMap(t, dir, fmt.Sprintf("b%d", i), map[string]string{"decision.rego": fmt.Sprintf("package broken %d", i), "decision_test.rego": ""})
		until(t, told, "a broken state", refusal)
		configMap(t, dir, fmt.Sprintf("g%d", i), answer(i%2))
		a := until(t, told, "a good state", activation)
		codes.Store(a.s.Revision(), fmt.Sprintf("A%d", i%2))
	}
	close(stop)
	wg.Wait()
	close(seen)
	revisions := map[string]bool{}
	for d := range seen {
		revisions[d.Revision] = true
		if want, ok := codes.Load(d.Revision); !ok || want != d.Findings[0].Code {
			t.Fatalf("revision %s answered %s, want %v", d.Revision, d.Findings[0].Code, want)
		}
	}
	if len(revisions) != 2 || decisions.Load() < 40 {
		t.Fatalf("%d decisions with %d revisions prove nothing", decisions.Load(), len(revisions))
	}
	t.Logf("%d decisions through 40 reloads", decisions.Load())
}
