package nodes

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// A node may say any time. It counts as alive as long as one that says the right time, wherever that is asked.
func TestAReportFromTheFutureMakesANodeAliveNoLonger(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"a little": time.Minute, "much": time.Hour, "for ever": 100 * 365 * 24 * time.Hour} {
		now := noon
		s := newServer()
		c := newCounter(s, func() time.Time { return now })
		r := newServing(s, c.Log, func() time.Time { return now })
		n := node("win-1", serves("a"), func(n *v1alpha1.GuardedNode) { n.ReportedAt = metav1.NewTime(noon.Add(ahead)) })
		if at := c.heartbeats.last(&n); at != noon {
			t.Errorf("%s: not seen yet, it was heard of at %s", name, at)
		}
		stored := s.put(n)
		c.came(nil, stored)
		r.came(nil, stored)
		for _, step := range []struct {
			after time.Duration
			want  bool
		}{{0, true}, {v1alpha1.NodeSilentAfter - time.Second, true}, {v1alpha1.NodeSilentAfter, false}, {2 * time.Hour, false}} {
			now = noon.Add(step.after)
			r.collect(t.Context())
			isLabelled := len(c.snapshot([]v1alpha1.GuardedNode{*stored}).wantedLabels()) > 0
			if r.Missing("b", "") != step.want || isLabelled != step.want {
				t.Errorf("%s, after %s: serves %t, labelled %t", name, step.after, r.Missing("b", ""), isLabelled)
			}
		}
	}
}

// One that is being deleted is not alive, wherever that is asked.
func TestAReportThatIsBeingDeletedIsOfNoLivingNode(t *testing.T) {
	n := node("win-1", serves("a"), func(n *v1alpha1.GuardedNode) { n.DeletionTimestamp = new(metav1.NewTime(noon)) })
	s := newServer()
	r := newServing(s, newCounter(s, atNoon).Log, atNoon)
	r.came(nil, s.put(n))
	r.collect(t.Context())
	found := snapshotOf(n)
	if r.Missing("b", "") || r.Missing("b", "win-1") || !found.isSilent(&n) || len(found.wantedLabels()) > 0 {
		t.Errorf("serves %t, silent %t, labels %v", r.Missing("b", ""), found.isSilent(&n), found.wantedLabels())
	}
}
