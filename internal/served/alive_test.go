package served

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

func TestANodeIsAliveForATime(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		heard   time.Duration // before now
		leaving bool
		want    bool
	}{
		"just heard":                   {0, false, true},
		"it missed two reports":        {v1alpha1.NodeSilentAfter - time.Nanosecond, false, true},
		"silent":                       {v1alpha1.NodeSilentAfter, false, false},
		"never heard":                  {now.Sub(time.Time{}), false, false},
		"its clock is ahead":           {-MaxAhead, false, true},
		"further than clocks are":      {-MaxAhead - time.Nanosecond, false, false},
		"in a hundred years":           {-100 * 365 * 24 * time.Hour, false, false},
		"being deleted":                {0, true, false},
		"silent and being deleted":     {time.Hour, true, false},
		"being deleted, in the future": {-time.Hour, true, false},
	} {
		n := node("win-1", v1alpha1.NodeGuarding)
		if c.leaving {
			n.DeletionTimestamp = new(metav1.NewTime(now))
		}
		if got := Alive(&n, now.Add(-c.heard), now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	n := node("win-1", v1alpha1.NodeGuarding)
	if Alive(&n, time.Unix(1<<40, 0), now) || Alive(&n, time.Time{}, now) {
		t.Error("alive at a time that no clock has")
	}
}
