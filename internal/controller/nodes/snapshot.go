package nodes

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/controller/publish"
	"github.com/pipeguard/pipeguard/internal/served"
)

// maxOthers is how many nodes a status names; its schema has the same bound.
const maxOthers = 10

// Standings of nodes, in the order in which a status names them: first those that need attention.
const (
	standingDenying     = "Denying"     // denies every call for want of a bundle
	standingRefusing    = "Refusing"    // did not take what it was offered
	standingUnreadable  = "Unreadable"  // does not read the schemas of what it is to take
	standingUnreachable = "Unreachable" // its service does not answer
	standingSilent      = "Silent"      // has not reported for long
	standingLocal       = "Local"       // decides by its own configuration alone
	standingBehind      = "Behind"      // decides by another bundle
	standingCurrent     = "Current"
)

var order = []string{standingDenying, standingRefusing, standingUnreadable, standingUnreachable, standingSilent, standingLocal, standingBehind}

// snapshot is what is known of all nodes at one time.
type snapshot struct {
	nodes     []v1alpha1.GuardedNode
	heard     func(*v1alpha1.GuardedNode) time.Time
	published map[string]publish.Result // by pool
	publishes bool                      // bundles are made here
	now       time.Time

	counted map[target]*v1alpha1.NodeCounts // policies that want the same have the same counts
}

// target is what a node must enforce to be current for a policy.
type target struct {
	revision string // of all policies
	isOut    bool   // the policy's generation is in the bundles
}

// want reads what was said of a policy: its generation decides at admission, and has been put into bundles if any are made.
func want(p *v1alpha1.PipePolicy) target {
	s := p.Status
	out := s.ObservedGeneration == p.Generation &&
		meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionCompiled) && meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionTestsPassed)
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionBundlesPublished); c != nil {
		out = out && c.ObservedGeneration == p.Generation && c.Status != metav1.ConditionUnknown
	}
	return target{s.Revision, out}
}

// counts returns nil if bundles are not in use.
func (c *snapshot) counts(w target) *v1alpha1.NodeCounts {
	if len(c.nodes) == 0 || !c.publishes && !slices.ContainsFunc(c.nodes, func(n v1alpha1.GuardedNode) bool { return n.Bundle != nil }) {
		return nil
	}
	if known, ok := c.counted[w]; ok {
		return known
	}
	out := &v1alpha1.NodeCounts{}
	for i := range c.nodes {
		n := &c.nodes[i]
		standing := c.standing(n, w)
		out.Total++
		switch standing {
		case standingCurrent:
			out.Current++
			continue
		case standingSilent:
			out.Silent++
		case standingRefusing:
			out.Refusing++
		default:
			out.Behind++
		}
		other := v1alpha1.OtherNode{Name: n.Name, Standing: standing}
		if n.Bundle != nil {
			other.Revision = n.Bundle.Revision
		}
		out.Others = append(out.Others, other)
	}
	out.Summary = fmt.Sprintf("%d/%d", out.Current, out.Total)
	slices.SortFunc(out.Others, func(a, b v1alpha1.OtherNode) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Standing), slices.Index(order, b.Standing)), cmp.Compare(a.Name, b.Name))
	})
	out.Others = slices.Clip(out.Others[:min(len(out.Others), maxOthers)])
	if c.counted == nil {
		c.counted = map[target]*v1alpha1.NodeCounts{}
	}
	c.counted[w] = out
	return out
}

// standing says how a node stands to what is wanted. What is not understood is not current.
func (c *snapshot) standing(n *v1alpha1.GuardedNode, w target) string {
	isRefusing := n.Bundle != nil && n.Bundle.Refused != ""
	switch {
	case c.isSilent(n):
		return standingSilent
	case n.State == v1alpha1.NodeUnreachable:
		return standingUnreachable
	case n.State == v1alpha1.NodeLocal:
		return standingLocal
	case n.State == v1alpha1.NodeGuarding && n.Bundle != nil && n.Bundle.Invalid == "" && c.isNewest(n.Bundle, w):
		return standingCurrent
	case n.Bundle != nil && cannotRead(n, c.published[n.Bundle.Pool]): // whatever its state
		return standingUnreadable
	case isRefusing: // which is why it may be denying, too
		return standingRefusing
	case n.State == v1alpha1.NodeDenying:
		return standingDenying
	}
	return standingBehind
}

// isNewest compares both revisions: that of admission does not change with what concerns nodes alone, and the bundle's is
// known only where it was made.
func (c *snapshot) isNewest(b *v1alpha1.NodeBundle, w target) bool {
	if !w.isOut || w.revision == "" || b.PolicyRevision != w.revision {
		return false
	}
	r, ok := c.published[b.Pool]
	return !ok || r.Err == nil && b.Revision >= 0 && uint64(b.Revision) >= r.Revision
}

// unread names the nodes that report and cannot read what was published for their pool.
func (c *snapshot) unread(r publish.Result) (names []string) {
	for i := range c.nodes {
		if n := &c.nodes[i]; n.Bundle != nil && n.Bundle.Pool == r.Pool && !c.isSilent(n) && cannotRead(n, r) {
			names = append(names, n.Name)
		}
	}
	return names
}

// cannotRead reports whether a node with a bundle reads what was published for its pool, by its own word: what it decides by
// it reads, and of anything else it must list the schemas.
func cannotRead(n *v1alpha1.GuardedNode, r publish.Result) bool {
	if n.State == v1alpha1.NodeGuarding && n.Bundle.Invalid == "" && n.Bundle.Revision >= 0 && uint64(n.Bundle.Revision) == r.Revision {
		return false
	}
	return slices.ContainsFunc(r.Schemas, func(s string) bool { return !slices.Contains(n.Schemas, s) })
}

func (c *snapshot) isSilent(n *v1alpha1.GuardedNode) bool { return !served.Alive(n, c.heard(n), c.now) }
