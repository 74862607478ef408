package clustercmd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/internal/served"
)

// unservedPipes names the pipes that PipePolicies name and that for certain no node that reports serves, as the end of a line; empty if there
// are none. No check fails by it: the guard is enforced all the same, but the pods of a driver wait.
func (s *survey) unservedPipes(ctx context.Context, reports map[string]*v1alpha1.GuardedNode) string {
	var nodes []v1alpha1.GuardedNode
	for _, n := range reports {
		nodes = append(nodes, *n)
	}
	pipes := served.Collect(nodes, func(n *v1alpha1.GuardedNode) bool { return s.isAlive(n) })
	var missing []string
	err := s.list(ctx, policiesOf("pipepolicies"), func(raw []byte) error {
		var p v1alpha1.PipePolicy
		if err := json.Unmarshal(raw, &p); err != nil {
			return err
		}
		for _, pattern := range p.Spec.Pipes {
			if name := pipepath.Fold(string(pattern)); policyset.Decides(&p) && pipes.Missing(name, "") { // which says nothing of a pattern
				missing = append(missing, name)
			}
		}
		return nil
	})
	if err != nil || len(missing) == 0 { // the check of policies says why
		return ""
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	text := "; no node that reports serves " + strings.Join(missing[:min(len(missing), maxShown)], ", ")
	if more := len(missing) - maxShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
