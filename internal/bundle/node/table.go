package node

import (
	"fmt"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// pattern is the name of a pipe that access lists use.
func pattern(p access.Pipe) string {
	if p.IsForwarded() {
		return p.Group
	}
	return p.Group + "-" + p.Version
}

// table is a Document for the pipes of this node at a time.
type table struct {
	policy *acl.Policy
	// guardedBy are the names of the policies that guard a pipe.
	guardedBy map[access.Pipe][]string
	// until is when the next subject ends; zero if none does.
	until time.Time
	notes []string
}

// translation makes rules of one policy.
type translation struct {
	p       *access.Policy
	pipes   []access.Pipe // those that it opens
	implied []string      // those of them for which the policy does not spell out the group: patterns of rules
	known   map[access.Pipe]acl.API
	notes   []string
}

func (t *translation) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf("PipePolicy %s: ", t.p.Name)+fmt.Sprintf(format, args...))
}

// newTable translates a checked document. What this node cannot express permits nothing here, and is said in the notes.
func newTable(d access.Document, known []acl.API, now time.Time) (*table, error) {
	out := &table{guardedBy: map[access.Pipe][]string{}}
	apis := map[access.Pipe]acl.API{}
	pipes := make([]access.Pipe, 0, len(known))
	for _, a := range known {
		p := access.Pipe{Group: a.Group, Version: a.Version}
		apis[p] = a
		pipes = append(pipes, p)
	}
	enforced, lenient := map[access.Pipe]bool{}, map[access.Pipe]bool{}
	var spec acl.Spec
	for i := range d.Policies {
		p := &d.Policies[i]
		t := translation{p: p, known: apis}
		for _, note := range p.ForAdmissionAlone() {
			t.note("%s", note)
		}
		for _, pipe := range pipes {
			if !p.Guards(pipe) {
				continue
			}
			out.guardedBy[pipe] = append(out.guardedBy[pipe], p.Name)
			isOpen := p.Opens(pipe)
			if isOpen {
				t.pipes = append(t.pipes, pipe)
				if !p.Spells(pipe) && !pipe.IsForwarded() {
					t.implied = append(t.implied, pattern(pipe))
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
			spec.Modes = append(spec.Modes, acl.PipeMode{Pipe: pattern(pipe), Mode: acl.LogOnly})
		}
	}
	policy, err := acl.New(spec)
	if err != nil {
		return nil, fmt.Errorf("access list: %w", err)
	}
	out.policy = policy
	return out, nil
}
