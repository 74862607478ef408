package nodes

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// serves has a report name these pipes.
func serves(pipes ...string) func(*v1alpha1.GuardedNode) {
	return func(n *v1alpha1.GuardedNode) { n.Pipes = append([]string{}, pipes...) }
}

func reportedNow(n *v1alpha1.GuardedNode) { n.ReportedAt = metav1.Now() }

// replica is a Serving at work.
type replica struct {
	*Serving
	server *server
	stop   func()
}

func startServing(t *testing.T, s *server) *replica {
	t.Helper()
	r := &replica{Serving: newServing(s, zap.NewNop(), time.Now), server: s}
	r.watch = func(context.Context, *Serving) error { return nil }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Start(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	synctest.Wait()
	return r
}

// reports stores a report, and tells of it as a watch does.
func (r *replica) reports(n v1alpha1.GuardedNode) {
	var before any
	if was := r.server.nodes[n.Name]; was != nil {
		before = was
	}
	r.came(before, r.server.put(n))
}

func TestAReplicaKnowsWhichPipesAreServed(t *testing.T) {
	const disk, smb = "csi-proxy-disk-v1", "csi-proxy-smb-v1"
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		r := startServing(t, s)
		is := func(what string, after time.Duration, want bool) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := r.Missing(smb, ""); got != want {
				t.Errorf("%s: missing %t", what, got)
			}
		}
		const soon = settle + time.Millisecond
		is("nobody reports", soon, false)
		r.reports(node("win-1", reportedNow, serves(disk)))
		is("one does not serve it", soon, true)
		if !r.Missing(smb, "win-1") || r.Missing(disk, "win-1") || r.Missing(smb, "win-2") {
			t.Error("what this node serves is not known")
		}
		r.reports(node("win-2", reportedNow))
		is("another is of an earlier release", soon, false)
		r.reports(node("win-2", reportedNow, serves(disk)))
		is("it is upgraded", soon, true)
		r.reports(node("win-2", reportedNow, serves(disk, smb)))
		is("it serves it", soon, false)
		r.reports(node("win-1", reportedNow, serves(disk)))
		is("until it is silent", v1alpha1.NodeSilentAfter-time.Minute, false)
		r.reports(node("win-1", reportedNow, serves(disk)))
		is("it is silent", time.Minute+every, true)
		r.reports(node("win-2", serves(disk, smb))) // its clock stands still, ours does not
		is("it is back", every+soon, false)
		leaving := node("win-2", reportedNow, serves(disk, smb))
		leaving.DeletionTimestamp = new(metav1.Now())
		r.reports(leaving)
		is("it is being deleted", soon, true)
		r.reports(node("win-2", reportedNow, isDown, serves(smb)))
		is("its service does not answer", soon, false)
		gone := s.nodes["win-2"]
		delete(s.nodes, "win-2")
		r.went(toolscache.DeletedFinalStateUnknown{Key: "win-2", Obj: gone})
		is("it is gone", soon, true)
		is("all are silent", v1alpha1.NodeSilentAfter+every, false)
		r.stop()
	})
}

func TestWhatCannotBeListedIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put(node("win-1", reportedNow, serves("csi-proxy-disk-v1")))
		var away atomic.Bool
		s.list = func(context.Context) error {
			if away.Load() {
				return errors.New("away")
			}
			return nil
		}
		r := startServing(t, s)
		if !r.Missing("csi-proxy-smb-v1", "") {
			t.Fatal("it is not known")
		}
		away.Store(true)
		time.Sleep(every + settle)
		synctest.Wait()
		if r.Missing("csi-proxy-smb-v1", "") || r.Missing("csi-proxy-smb-v1", "win-1") {
			t.Error("it is known")
		}
		r.stop()
	})
}

func TestHeartbeatsAskForNoSummary(t *testing.T) {
	s := newServer()
	r := newServing(s, zap.NewNop(), atNoon)
	was := s.put(node("win-1", serves("a")))
	for name, c := range map[string]struct {
		next v1alpha1.GuardedNode
		news bool
	}{
		"a heartbeat":    {node("win-1", serves("a")), false},
		"another bundle": {node("win-1", serves("a"), isOlder), false},
		"more pipes":     {node("win-1", serves("a", "b")), true},
		"no pipes":       {node("win-1", serves()), true},
		"not known":      {node("win-1"), true},
		"no answer":      {node("win-1", serves("a"), isDown), true},
		"an odd name":    {node("win-1", serves("a/b")), true},
	} {
		r.came(was, &c.next)
		select {
		case <-r.changed:
			if !c.news {
				t.Errorf("%s is news", name)
			}
		default:
			if c.news {
				t.Errorf("%s is no news", name)
			}
		}
	}
}

// Once a second at most, each replica looks at all reports. It copies none, and changes none.
func TestASummaryCopiesNoReport(t *testing.T) {
	s := newServer()
	s.put(node("win-1", serves("b", "a")))
	before := s.nodes["win-1"].DeepCopy()
	r := newServing(s, zap.NewNop(), atNoon)
	r.collect(t.Context())
	if !s.shared || r.Missing("a", "win-1") || !r.Missing("c", "win-1") {
		t.Errorf("copied %t, misses a %t, c %t", !s.shared, r.Missing("a", "win-1"), r.Missing("c", "win-1"))
	}
	if diff := cmp.Diff(before, s.nodes["win-1"]); diff != "" {
		t.Errorf("a report has changed:\n%s", diff)
	}
}
