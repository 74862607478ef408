package admission

import (
	"cmp"
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

// permitsUnprivileged reports whether one of the subjects asks for no privileged container besides; those that have ended ask for nothing.
func (a *Access) permitsUnprivileged() bool {
	return len(a.Subjects) == 0 || slices.ContainsFunc(a.Subjects, func(s AccessSubject) bool { return s.Requirement != PrivilegedAndAllowedNamespace })
}

// standing tells of the end of a permission, the answer to "it worked yesterday", or, where there never was one, of what is missing.
func (a *Access) standing(c *Container) string {
	last, isOpen := a.last()
	switch {
	case last != nil && c != nil && !c.Privileged && !a.permitsUnprivileged():
		return fmt.Sprintf("; subject %s of %s permits it to a privileged container only", quote(last.Subject, maxName), describePolicy(last.Policy))
	case last != nil && last.ExpiresAt != "":
		verb := "ended"
		if isOpen {
			verb = "ends"
		}
		return fmt.Sprintf("; subject %s of %s %s %s", quote(last.Subject, maxName), describePolicy(last.Policy), verb, last.ExpiresAt)
	case last == nil && len(a.Nearest) > 0:
		return a.Nearest[0].describe(c)
	}
	return ""
}

func describePolicy(name string) string {
	if name == hostProcessParameter {
		return "the parameter hostProcessAllowed"
	}
	return "PipePolicy " + quote(name, maxName)
}

// describe says what the nearest subject wants, and what is there in its place if that is the container's.
func (n AccessMiss) describe(c *Container) string {
	want := make([]string, len(n.Want))
	for i, s := range n.Want {
		want[i] = quote(s, maxName)
	}
	s := fmt.Sprintf("; nearest is subject %s of %s: ", quote(n.Subject, maxName), describePolicy(n.Policy))
	if n.Field == string(access.FieldHostProcess) {
		return s + "it does not permit HostProcess containers"
	}
	if len(want) == 0 {
		return s + "it permits no host paths"
	}
	s += n.Field + ": want " + strings.Join(want, " or ")
	switch {
	case c == nil:
	case n.Field == string(access.FieldContainer):
		s += ", is " + quote(c.Name, maxName)
	case n.Field == string(access.FieldImage):
		s += ", is " + quote(c.Image, maxPath)
		if isElsewhere(c.Image, n.Want) {
			s += ", of none of these registries"
		}
	case n.Field == string(access.FieldRunAsUserName) && c.RunAsUserName == "":
		s += ", is not set"
	case n.Field == string(access.FieldRunAsUserName):
		s += ", is " + quote(c.RunAsUserName, maxName)
	}
	return s
}

// isElsewhere reports whether an image is of another registry than all of the wanted ones, as those of a mirror are. A digest alone is of any.
func isElsewhere(image string, want []string) bool {
	registry := registryOf(image)
	return registry != "" && !slices.ContainsFunc(want, func(s string) bool { return registryOf(s) == "" || registryOf(s) == registry })
}

// registryOf is the registry of an image that has a path: Docker Hub if its first word is none.
func registryOf(image string) string {
	if !strings.Contains(image, "/") {
		return ""
	}
	registry, _, _, _ := cutImage(image)
	return cmp.Or(registry, "docker.io")
}

// deadline is the end of the permission that a mount or a HostProcess container rests on, for a warning.
func (d *describer) deadline(field string) string {
	var a *Access
	if m := d.mount(field); m != nil {
		a = m.Access
	} else if c := d.container(field); c != nil {
		a = c.Access
	}
	if a != nil {
		if last, isOpen := a.last(); isOpen && last.ExpiresAt != "" {
			return " (until " + last.ExpiresAt + ")"
		}
	}
	return ""
}
