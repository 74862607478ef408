package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hub "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// node is a proxy over a host and a disk that can fail, with the host's own word for what it has done.
type node struct {
	*fixture
	t     *testing.T
	disk  *disk
	log   *seen
	host  *fakehost.Host
	calls hub.FilesystemClient
	made  atomic.Int64 // calls, each about a path of its own
	told  map[string]error
	early atomic.Int64 // operations that began while their intents were not on the disk
}

// newNode starts one. What happens before an operation is done is up to before, which may be nil.
func newNode(t *testing.T, d *disk, o segment.Options, before func(path string), change ...func(*Options)) *node {
	t.Helper()
	roots, err := safepath.NewRoots(`C:\var\lib\kubelet`)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, disk: d, told: map[string]error{}}
	n.host = fakehost.New(fakehost.Options{Roots: roots, Block: func(_ context.Context, _ string, args ...string) {
		if !d.isDurable(`"stage":"RequestReceived"`, strings.ReplaceAll(args[0], `\`, `\\`)) {
			n.early.Add(1)
		}
		if before != nil {
			before(args[0])
		}
	}})
	handlers, err := handler.New(handler.Hosts{Filesystem: n.host}, roots)
	if err != nil {
		t.Fatal(err)
	}
	memory := newMemoryLog()
	if o.Retry == 0 {
		o.Retry = time.Nanosecond
	}
	n.log = see(t, memory, func(o segment.Options) (*segment.Writer, error) { return segment.OpenDisk(t.Context(), d, o) }, o)
	t.Cleanup(func() { _ = n.log.Close() }) // after the server; whether it works is no matter here
	n.fixture = start(t, "memory", append([]func(*Options){func(o *Options) { o.Audit, o.Handle = n.log, handlers.Handle }}, change...)...)
	n.fixture.log = memory
	n.calls = hub.NewFilesystemClient(n.client(t, "filesystem-v2alpha1"))
	return n
}

// call makes a directory that nobody else makes, and remembers what it was told.
func (n *node) call() (path string, err error) {
	n.t.Helper()
	path = fmt.Sprintf(`C:\var\lib\kubelet\%d`, n.made.Add(1))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = n.calls.Mkdir(ctx, &hub.MkdirRequest{Path: path})
	return path, err
}

func (n *node) tell(count int) {
	n.t.Helper()
	for range count {
		path, err := n.call()
		n.told[path] = err
	}
}

// done are the paths that the host says it has acted on, with how often.
func (n *node) done() map[string]int {
	done := map[string]int{}
	for _, e := range n.host.Ledger() {
		done[e.Args[0]]++
	}
	return done
}

// judge holds what callers were told and what the host has done against the log.
func (n *node) judge() {
	n.t.Helper()
	intents, ends := map[string]audit.Event{}, map[string]audit.Event{}
	for _, e := range n.fixture.log.all() {
		if e.Type != audit.TypeRequest || len(e.What.Targets) == 0 {
			continue
		}
		if path := e.What.Targets[0].Value; e.Stage == audit.StageRequestReceived {
			intents[path] = e
		} else {
			ends[path] = e
		}
	}
	done := n.done()
	for path, err := range n.told {
		intent, admitted := intents[path]
		end, ended := ends[path]
		switch code := status.Code(err); {
		case !ended:
			n.t.Errorf("%s: no record ends it", path)
		case done[path] > 0 && (!admitted || end.IntentSeq != intent.Seq || end.Outcome.Result != audit.ResultOK):
			n.t.Errorf("%s was done; intent %d, ended as %s of intent %d", path, intent.Seq, end.Outcome.Result, end.IntentSeq)
		case done[path] > 1:
			n.t.Errorf("%s was done %d times", path, done[path])
		case done[path] == 0 && (end.Outcome.Result != audit.ResultRejected || end.IntentSeq != 0 || admitted):
			n.t.Errorf("%s was not done; intent %d, ended as %s of intent %d", path, intent.Seq, end.Outcome.Result, end.IntentSeq)
		case code == codes.OK && done[path] == 0, code == codes.Unavailable && done[path] > 0:
			n.t.Errorf("%s: told %v, and done %d times", path, err, done[path])
		case code == codes.Unavailable && !strings.Contains(err.Error(), "audit_unavailable"),
			code == codes.Internal && (done[path] == 0 || !strings.Contains(err.Error(), end.ID)),
			code != codes.OK && code != codes.Unavailable && code != codes.Internal:
			n.t.Errorf("%s: told %v; its record is %s, and it was done %d times", path, err, end.ID, done[path])
		}
	}
	n.disk.copies(n.t)
	if n.early.Load() > 0 {
		n.t.Errorf("%d operations began before their intents were on the disk", n.early.Load())
	}
}

// faultCalls is how many calls are made while the disk fails at one of its steps.
const faultCalls = 6

func TestAFaultOfTheDiskAtAnyStepRunsNothingUnrecorded(t *testing.T) {
	counted := newDisk()
	quiet := newNode(t, counted, segment.Options{}, nil)
	first := counted.steps
	quiet.tell(faultCalls)
	last := counted.steps
	if last-first < 2*2*faultCalls { // two records a call, each written and flushed
		t.Fatalf("%d steps", last-first)
	}
	stride := 1
	if testing.Short() {
		stride = 5
	}
	told := map[codes.Code]int{}
	for _, kind := range []struct {
		name    string
		written int
		lasting int
	}{{"nothing is written", 0, 1}, {"half a line is written", 100, 1}, {"all is written and not flushed", 1 << 20, 1}, {"three in a row", 100, 3}, {"eight in a row", 1 << 20, 8}} {
		t.Run(kind.name, func(t *testing.T) {
			for at := first + 1; at <= last; at += stride {
				t.Run(fmt.Sprint("from step ", at), func(t *testing.T) {
					d := newDisk()
					d.failing(func(step int, _ string) (int, error) {
						if step >= at && step < at+kind.lasting {
							return kind.written, errInjected
						}
						return 0, nil
					})
					n := newNode(t, d, segment.Options{}, nil)
					n.tell(faultCalls)
					d.failing(nil)
					path, err := n.call() // the disk works again, and nobody was restarted
					if n.told[path] = err; err != nil {
						t.Errorf("after the fault: %v", err)
					}
					if err := n.stop(); err != nil {
						t.Error(err)
					}
					n.judge()
					for _, err := range n.told {
						told[status.Code(err)]++
					}
				})
			}
		})
	}
	if told[codes.OK] == 0 || told[codes.Unavailable] == 0 || told[codes.Internal] == 0 {
		t.Errorf("callers were told %v: the faults met too little", told)
	}
	t.Logf("%d steps, callers were told %v", last-first, told)
}

func TestOnAFullDiskNothingRunsUntilThereIsRoom(t *testing.T) {
	d := newDisk()
	n := newNode(t, d, segment.Options{}, nil)
	n.tell(1)
	d.failing(func(_ int, what string) (int, error) {
		if what == "allocate" || what == "write" || what == "create" {
			return 0, errInjected
		}
		return 0, nil
	})
	n.tell(5)
	if got := len(n.done()); got != 1 {
		t.Errorf("%d operations ran, want 1", got)
	}
	if n.log.Stats().Err == nil {
		t.Error("the log says that it works")
	}
	d.failing(nil)
	n.tell(1)
	if got := len(n.done()); got != 2 {
		t.Errorf("%d operations ran, want 2", got)
	}
	if err := n.stop(); err != nil {
		t.Error(err)
	}
	n.judge()
}

func TestNothingIsAdmittedWhileTheEndOfAnOperationIsMissing(t *testing.T) {
	d := newDisk()
	broken := errors.New("no space left on device")
	n := newNode(t, d, segment.Options{}, func(path string) {
		if strings.HasSuffix(path, `\2`) { // its intent is on the disk, and its end will not be
			d.failing(func(int, string) (int, error) { return 0, broken })
		}
	})
	n.tell(4)
	for path, want := range map[string]codes.Code{`\1`: codes.OK, `\2`: codes.Internal, `\3`: codes.Unavailable, `\4`: codes.Unavailable} {
		if err := n.told[`C:\var\lib\kubelet`+path]; status.Code(err) != want {
			t.Errorf("%s: told %v, want %v", path, err, want)
		}
	}
	if got := n.metric(t, "pipeguard_audit_backlog"); got != 3 {
		t.Errorf("%v records wait, want 3", got)
	}
	if got := n.metric(t, "pipeguard_audit_unreconciled"); got > 0 { // less while an answer is on its way
		t.Errorf("%v unreconciled: what waits is not missing", got)
	}
	d.failing(nil)
	n.tell(1)
	if err := n.stop(); err != nil {
		t.Error(err)
	}
	n.judge()
	if got := len(n.done()); got != 3 {
		t.Errorf("%d operations ran, want 3", got)
	}
}

func TestARecordThatWaitsIsMarkedOnceItWasTried(t *testing.T) {
	d := newDisk()
	n := newNode(t, d, segment.Options{}, nil)
	failing := func(steps ...string) {
		d.failing(func(_ int, what string) (int, error) {
			if slices.Contains(steps, what) {
				return 0, errInjected
			}
			return 0, nil
		})
	}
	failing("sync", "create")
	n.tell(1) // is refused, and no file is there for the record of that
	failing("sync", "remove")
	n.tell(1) // that record is written, not flushed, and stays where it is
	d.failing(nil)
	n.tell(1)
	if err := n.stop(); err != nil {
		t.Error(err)
	}
	n.judge()
}
