package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

const fullName = `\\.\pipe\`

// pipe is a pipe of this node.
type pipe struct{ group, version string }

// name is the name that PipePolicies use, in lower case.
func (p pipe) name() string {
	if full, ok := strings.CutPrefix(p.group, fullName); ok {
		return strings.ToLower(full)
	}
	return access.PipePrefix + p.group + "-" + p.version
}

// pattern is the name that access lists use.
func (p pipe) pattern() string {
	if strings.HasPrefix(p.group, fullName) {
		return p.group
	}
	return p.group + "-" + p.version
}

func (p pipe) isForwarded() bool { return strings.HasPrefix(p.group, fullName) }

// guards says whether a pattern of a PipePolicy covers the pipe, as at admission.
func guards(pattern string, p pipe) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(p.name(), prefix)
	}
	return p.name() == pattern
}

// opens says whether what the policy permits holds for the pipe too. csi-proxy* guards system-v1, and permits nothing there.
func opens(pattern string, p pipe) bool {
	return guards(pattern, p) && (!access.MustBeSpelled(p.group) || strings.HasPrefix(pattern, access.PipePrefix+p.group))
}

// spells says whether a pattern that opens the pipe spells out its group: csi-proxy-disk-v1 and csi-proxy-disk-* do, csi-proxy-d*
// and csi-proxy-disk* do not.
func spells(pattern string, p pipe) bool {
	return opens(pattern, p) && strings.HasPrefix(pattern, access.PipePrefix+p.group+"-")
}

// table is a Document for the pipes of this node at a time.
type table struct {
	policy *acl.Policy
	// guardedBy are the names of the policies that guard a pipe.
	guardedBy map[pipe][]string
	// until is when the next subject ends; zero if none does.
	until time.Time
	notes []string
}

// translation makes rules of one policy.
type translation struct {
	p       access.Policy
	pipes   []pipe   // those that it opens
	implied []string // those of them for which the policy does not spell out the group: patterns of rules
	known   map[pipe]acl.API
	notes   []string
}

func (t *translation) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf("PipePolicy %s: ", t.p.Name)+fmt.Sprintf(format, args...))
}

// newTable translates a checked document. What this node cannot express permits nothing here, and is said in the notes.
func newTable(d access.Document, known []acl.API, now time.Time) (*table, error) {
	out := &table{guardedBy: map[pipe][]string{}}
	apis := map[pipe]acl.API{}
	pipes := make([]pipe, 0, len(known))
	for _, a := range known {
		p := pipe{a.Group, a.Version}
		apis[p] = a
		pipes = append(pipes, p)
	}
	enforced, lenient := map[pipe]bool{}, map[pipe]bool{}
	var spec acl.Spec
	for _, p := range d.Policies {
		t := translation{p: p, known: apis}
		for _, pipe := range pipes {
			if !slices.ContainsFunc(p.Pipes, func(pattern string) bool { return guards(pattern, pipe) }) {
				continue
			}
			out.guardedBy[pipe] = append(out.guardedBy[pipe], p.Name)
			isOpen := slices.ContainsFunc(p.Pipes, func(pattern string) bool { return opens(pattern, pipe) })
			if isOpen {
				t.pipes = append(t.pipes, pipe)
				isSpelled := slices.ContainsFunc(p.Pipes, func(pattern string) bool { return spells(pattern, pipe) })
				if !isSpelled && !pipe.isForwarded() {
					t.implied = append(t.implied, pipe.pattern())
				}
			}
			if p.LogOnly && isOpen {
				lenient[pipe] = true
			} else {
				enforced[pipe] = true
			}
		}
		for i := range p.Subjects {
			s := &p.Subjects[i]
			if s.HasEnded(now) {
				continue
			}
			if !s.ExpiresAt.IsZero() && (out.until.IsZero() || s.End().Before(out.until)) {
				out.until = s.End()
			}
			if len(t.pipes) > 0 {
				spec.Rules = append(spec.Rules, t.rules(s)...)
			}
		}
		out.notes = append(out.notes, t.notes...)
	}
	for _, pipe := range pipes {
		if lenient[pipe] && !enforced[pipe] { // of several policies the strictest counts
			spec.Modes = append(spec.Modes, acl.PipeMode{Pipe: pipe.pattern(), Mode: acl.LogOnly})
		}
	}
	policy, err := acl.New(spec)
	if err != nil {
		return nil, fmt.Errorf("access list: %w", err)
	}
	out.policy = policy
	return out, nil
}
