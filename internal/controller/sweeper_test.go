package controller

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// sweeping is a sweeper at work, and the names that it had looked at.
type sweeping struct {
	*sweeper
	outcomes outcomes
	objects  *memory

	mu    sync.Mutex // guards the rest
	names []string
	err   error
}

func (s *sweeping) note(e event.GenericEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = append(s.names, e.Object.GetName())
}

func (s *sweeping) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func sweep(t *testing.T) *sweeping {
	t.Helper()
	s := &sweeping{objects: newMemory()}
	s.objects.pipes = []v1alpha1.PipePolicy{pipePolicy("q", 1), pipePolicy("p", 1)}
	s.objects.modules = []v1alpha1.PolicyModule{policyModule("a", 1, goodRego)}
	s.sweeper = &sweeper{
		objects: s.objects, outcome: s.outcomes.Subscribe(), metrics: NewMetrics(nil, time.Now), log: zap.NewNop(),
		count: func(context.Context) (ReplicaCount, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return three, s.err
		},
		changed: make(chan struct{}, 1), pipes: make(chan event.GenericEvent), modules: make(chan event.GenericEvent),
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-s.pipes:
				s.note(e)
			case e := <-s.modules:
				s.note(e)
			}
		}
	}()
	synctest.Wait()
	return s
}

func (s *sweeping) taken() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.names
	s.names = nil
	return out
}

func TestAllIsLookedAtAfterAChangeAndNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sweep(t)
		all := []string{"p", "q", "a"}
		if diff := cmp.Diff(all, s.taken()); diff != "" {
			t.Errorf("at the start: %s", diff)
		}
		s.outcomes.publish(Outcome{})
		for range 4 { // the replicas report one after the other
			s.refresh()
			time.Sleep(gather / 8)
		}
		if got := s.taken(); got != nil {
			t.Errorf("at once: %q", got)
		}
		time.Sleep(gather)
		if diff := cmp.Diff(all, s.taken()); diff != "" {
			t.Errorf("after a change: %s", diff)
		}
		s.refresh()
		if got := s.taken(); got != nil {
			t.Errorf("at once: %q", got)
		}
		time.Sleep(gather)
		if diff := cmp.Diff(all, s.taken()); diff != "" {
			t.Errorf("after it was asked for: %s", diff)
		}
		time.Sleep(sweepEvery - time.Second)
		if got := s.taken(); got != nil {
			t.Errorf("without a reason: %q", got)
		}
		time.Sleep(time.Second)
		if diff := cmp.Diff(all, s.taken()); diff != "" {
			t.Errorf("after a while: %s", diff)
		}
	})
}

func TestASweepThatFailsIsNotTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sweep(t)
		s.taken()
		s.fail(errDisk)
		s.refresh()
		time.Sleep(time.Second)
		if got := s.taken(); got != nil {
			t.Errorf("without counts: %q", got)
		}
		s.fail(nil)
		s.refresh()
		time.Sleep(time.Second)
		if got := s.taken(); len(got) != 3 {
			t.Errorf("after a failure: %q", got)
		}
	})
}

func TestOnlyAReportWithNewsIsNews(t *testing.T) {
	before := lease("a", Outcome{Revision: "sha256:1", Attempted: "x"}, time.Minute)
	renewed := lease("a", Outcome{Revision: "sha256:1", Attempted: "x"}, 0)
	if reports(&before, &renewed) {
		t.Error("a sign of life is news") // every half minute, from every replica
	}
	failed := lease("a", Outcome{Revision: "sha256:1", Attempted: "y", Err: errDisk}, 0)
	if !reports(&before, &failed) {
		t.Error("a refusal is no news")
	}
}

func TestWritingAStatusIsNoChangeOfPolicies(t *testing.T) {
	before := pipePolicy("p", 1)
	for name, c := range map[string]struct {
		change func(*v1alpha1.PipePolicy)
		want   bool
	}{
		"a status":       {func(p *v1alpha1.PipePolicy) { p.Status.Revision, p.ResourceVersion = "sha256:1", "2" }, false},
		"a label":        {func(p *v1alpha1.PipePolicy) { p.Labels = map[string]string{"x": "y"} }, false},
		"a generation":   {func(p *v1alpha1.PipePolicy) { p.Generation++ }, true},
		"a field":        {func(p *v1alpha1.PipePolicy) { p.Unknown = "spec.zones" }, true},
		"a subject":      {func(p *v1alpha1.PipePolicy) { p.Spec.Subjects = []v1alpha1.Subject{lasting("x")} }, true},
		"another object": {func(p *v1alpha1.PipePolicy) { p.UID = "other" }, true},
		"a deletion":     {func(p *v1alpha1.PipePolicy) { p.DeletionTimestamp = ending("x", 0).ExpiresAt }, true},
	} {
		after := *before.DeepCopy()
		c.change(&after)
		if got := differs(&before, &after); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestMetricsOfReplicasAreThoseOfTheLastSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sweep(t)
		reg := prometheus.NewRegistry()
		reg.MustRegister(s.metrics.replicas)
		if got := gathered(t, reg)["pipeguard_replicas live"]; got != 3 {
			t.Errorf("%v live", got)
		}
	})
}
