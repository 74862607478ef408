// Package served tells which nodes serve which pipes, by what nodes report. It believes a node about itself alone, and nothing that is
// not in the form of the schema.
package served

import (
	"regexp"
	"slices"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// Bounds of the schema of GuardedNode, which is compared with them in a test.
const (
	// MaxPipes is how many pipes a report names.
	MaxPipes = 64
	// maxName bounds the name of a pipe in bytes, as the name of a label is bounded.
	maxName = 63
)

var name = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`)

// isName says whether a report can name a pipe, and a label can.
func isName(pipe string) bool { return len(pipe) <= maxName && name.MatchString(pipe) }

// By returns the pipes that a node serves by its report, and false if the report does not say so: the service does not answer, is of an
// earlier release, or the list has no form that the schema takes. The caller does not change them.
func By(r *v1alpha1.NodeReport) (pipes []string, known bool) {
	isOdd := func(pipe string) bool { return !isName(pipe) }
	if r.Pipes == nil || r.State == v1alpha1.NodeUnreachable || len(r.Pipes) > MaxPipes || slices.ContainsFunc(r.Pipes, isOdd) {
		return nil, false
	}
	return r.Pipes, true
}

// Pipes is what is known of the pipes of all nodes at one time. It does not change, and may be used by many at once. Nil knows nothing.
type Pipes struct {
	anywhere map[string]bool     // served by at least one node
	nodes    map[string][]string // of those that say what they serve
	complete bool                // all say so, and there is at least one
}

// Collect sums up the reports of nodes that are alive: of others it is not known what they serve, and they run nothing.
func Collect(nodes []v1alpha1.GuardedNode, isAlive func(*v1alpha1.GuardedNode) bool) *Pipes {
	out := &Pipes{anywhere: map[string]bool{}, nodes: map[string][]string{}, complete: true}
	for i := range nodes {
		n := &nodes[i]
		if !isAlive(n) {
			continue
		}
		pipes, known := By(&n.NodeReport)
		if !known {
			out.complete = false
			continue
		}
		out.nodes[n.Name] = pipes
		for _, pipe := range pipes {
			out.anywhere[pipe] = true
		}
	}
	out.complete = out.complete && len(out.nodes) > 0
	return out
}

// Missing reports whether it is certain that a pipe, named in lower case, is not served by the node of a name or, with an empty one,
// by any node that reports. It is false of what is not known.
func (p *Pipes) Missing(pipe, node string) bool {
	if p == nil {
		return false
	}
	if node != "" {
		pipes, known := p.nodes[node]
		return known && !slices.Contains(pipes, pipe) && isName(pipe)
	}
	return p.complete && !p.anywhere[pipe] && isName(pipe)
}
