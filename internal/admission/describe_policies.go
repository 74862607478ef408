package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/access"
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

// last is the permission of an entry that lasts longest, or of those that have ended the last one.
func (a *Access) last() (last *AccessSubject, isOpen bool) {
	for i := range a.Subjects {
		s := &a.Subjects[i]
		if last == nil || last.ExpiresAt != "" && (s.ExpiresAt == "" || s.ExpiresAt > last.ExpiresAt) {
			last = s
		}
	}
	if last == nil {
		return a.ended, false
	}
	return last, true
}

// permitsUnprivileged says whether one of the subjects asks for no privileged container besides; those that have ended ask for nothing.
func (a *Access) permitsUnprivileged() bool {
	return len(a.Subjects) == 0 || slices.ContainsFunc(a.Subjects, func(s AccessSubject) bool { return s.Requirement != PrivilegedAndAllowedNamespace })
}

// standing tells of the end of a permission, the answer to "it worked yesterday", or, where there never was one, of what is missing.
func (a *Access) standing(m *Mount) string {
	last, isOpen := a.last()
	switch {
	case last != nil && m != nil && !m.Privileged && !a.permitsUnprivileged():
		return fmt.Sprintf("; subject %s of PipePolicy %s permits it to a privileged container only", quote(last.Subject, maxName), quote(last.Policy, maxName))
	case last != nil && last.ExpiresAt != "":
		verb := "ended"
		if isOpen {
			verb = "ends"
		}
		return fmt.Sprintf("; subject %s of PipePolicy %s %s %s", quote(last.Subject, maxName), quote(last.Policy, maxName), verb, last.ExpiresAt)
	case last == nil && len(a.Nearest) > 0:
		return a.Nearest[0].describe(m)
	}
	return ""
}

// describe says what the nearest subject wants, and what is there in its place if that is the container's.
func (n AccessMiss) describe(m *Mount) string {
	want := make([]string, len(n.Want))
	for i, s := range n.Want {
		want[i] = quote(s, maxName)
	}
	s := fmt.Sprintf("; nearest is subject %s of PipePolicy %s: %s: want %s", quote(n.Subject, maxName), quote(n.Policy, maxName), n.Field, strings.Join(want, " or "))
	switch {
	case m != nil && n.Field == string(access.FieldContainer):
		s += ", is " + quote(m.Container, maxName)
	case m != nil && n.Field == string(access.FieldImage):
		s += ", is " + quote(m.Image, maxPath)
	}
	return s
}

// deadline is the end of the permission that a mount rests on, for a warning.
func (d *describer) deadline(field string) string {
	if m := d.mount(field); m != nil && m.Access != nil {
		if last, isOpen := m.Access.last(); isOpen && last.ExpiresAt != "" {
			return " (until " + last.ExpiresAt + ")"
		}
	}
	return ""
}
