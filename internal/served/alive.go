package served

import (
	"time"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// MaxAhead is how far the time of a report may lie in the future: the clocks of two machines differ by so much at most where bundles are
// taken, too. A node that says more would count as alive long after its last report.
const MaxAhead = 5 * time.Minute

// Alive reports whether a node that was last heard of at a time counts as one that reports: not if that is too long ago, or too far in the
// future, or if its report is being deleted.
func Alive(n *v1alpha1.GuardedNode, heard, now time.Time) bool {
	silent := now.Sub(heard)
	return n.DeletionTimestamp == nil && silent < v1alpha1.NodeSilentAfter && silent >= -MaxAhead
}
