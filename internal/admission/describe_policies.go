package admission

import (
	"fmt"
	"slices"
	"strings"
)

// maxGovernorsShown is how many of the policies that govern a pipe a message names.
const maxGovernorsShown = 3

// describeGovernors names the PipePolicies that govern a pipe.
func describeGovernors(policies []string) string {
	if len(policies) == 0 {
		return ""
	}
	names := make([]string, 0, maxGovernorsShown)
	for _, name := range policies[:min(len(policies), maxGovernorsShown)] {
		names = append(names, quote(name, maxName))
	}
	s := ", governed by PipePolicy " + strings.Join(names, ", ")
	if more := len(policies) - len(names); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// permission is the one that lasts longest of those that the policies which govern a pipe give to who asks for it.
type permission struct {
	policy, subject string
	end             string // empty for one that does not end
	isOpen          bool
}

// permission looks for one that ends or has ended; nil if there is none, or one that does not end. m is nil for a volume
// that no container mounts.
func (d *describer) permission(policies []string, m *Mount) (last *permission) {
	for _, name := range policies {
		for i := range d.scope.policies[name].Subjects {
			if d.subjects--; d.subjects < 0 {
				return nil
			}
			s := &d.scope.policies[name].Subjects[i]
			if !s.isFor(d.in, m) {
				continue
			}
			end, _ := s.expiry()
			if end == "" {
				return nil
			}
			if last == nil || end > last.end {
				last = &permission{policy: name, subject: s.Name, end: end, isOpen: d.in.Now < end}
			}
		}
	}
	return last
}

// ending tells of the end of a permission: the answer to "it worked yesterday".
func (d *describer) ending(policies []string, m *Mount) string {
	p := d.permission(policies, m)
	if p == nil {
		return ""
	}
	verb := "ended"
	if p.isOpen {
		verb = "ends"
	}
	return fmt.Sprintf("; subject %s of PipePolicy %s %s %s", quote(p.subject, maxName), quote(p.policy, maxName), verb, p.end)
}

// deadline is the end of the permission that a mount rests on, for a warning.
func (d *describer) deadline(field string) string {
	if m := d.mount(field); m != nil && len(m.Policies) > 0 {
		if p := d.permission(m.Policies, m); p != nil && p.isOpen {
			return " (until " + p.end + ")"
		}
	}
	return ""
}

// isFor says whether a subject is the one that asks. What is permitted is for Rego to say: this is for texts.
func (s *PolicySubject) isFor(in *Input, m *Mount) bool {
	has := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	if s.Namespace != in.Namespace || !has(s.ServiceAccounts, in.ServiceAccount) {
		return false
	}
	if m == nil {
		return true
	}
	return has(s.Containers, m.Container) && (len(s.Images) == 0 || slices.ContainsFunc(s.Images, func(image string) bool {
		prefix, ok := strings.CutSuffix(image, "*")
		return image == m.Image || ok && strings.HasPrefix(m.Image, prefix)
	}))
}
