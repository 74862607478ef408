package admission

import (
	"strings"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// describe says in a line what a finding is about, in the terms of the object: container, volume, path and fields.
func describe(in *Input, f policy.Finding) string {
	if f.Message != "" {
		return withField(plain(f.Message, maxText), f.Field)
	}
	if m := find(in.Mounts, func(m *Mount) (string, bool) { return m.Field, m.Guarded }, f.Field); m != nil {
		return describeMount(m)
	}
	if v := find(in.Unmounted, func(v *Volume) (string, bool) { return v.Field, v.Guarded }, f.Field); v != nil {
		return "volume " + quote(v.Volume, maxName) + ", which no container mounts, is " +
			describeTarget(&v.Target) + " (" + v.Field + ")"
	}
	if c := find(in.Containers, func(c *Container) (string, bool) { return c.Field, true }, f.Field); c != nil {
		return withField(describeContainer(c.Name, c.Type), c.Field)
	}
	return withField("", f.Field)
}

func describeMount(m *Mount) string {
	var b strings.Builder
	b.WriteString(describeContainer(m.Container, m.ContainerType))
	b.WriteString(" mounts volume " + quote(m.Volume, maxName))
	if m.SubPath != "" {
		b.WriteString(" with subPath " + quote(m.SubPath, maxPath))
	}
	b.WriteString(": " + describeTarget(&m.Target) + " (" + m.Field + ", " + m.VolumeField + ")")
	return b.String()
}

func describeContainer(name, kind string) string {
	switch kind {
	case typeInit:
		return "init container " + quote(name, maxName)
	case typeEphemeral:
		return "ephemeral container " + quote(name, maxName)
	}
	return "container " + quote(name, maxName)
}

// describeTarget gives the path as written, and what it names where that is not the same.
func describeTarget(t *Target) string {
	s := quote(t.Path, maxPath)
	switch {
	case t.Canonical != "" && t.Canonical != t.Path:
		s += ", canonical form " + quote(t.Canonical, maxPath)
	case t.NeverAllowed:
		s += ", which names no single pipe"
	}
	return s
}

func withField(s, field string) string {
	field = fieldText(field)
	switch {
	case field == "":
		return s
	case s == "":
		return field
	}
	return s + " (" + field + ")"
}

// find returns the entry with that field. Where volumes share a name several entries have it, and one that is
// guarded explains more than one that is not.
func find[T any](entries []T, key func(*T) (field string, guarded bool), field string) (found *T) {
	if field == "" {
		return nil
	}
	for i := range entries {
		at, guarded := key(&entries[i])
		if at != field {
			continue
		}
		if guarded {
			return &entries[i]
		}
		if found == nil {
			found = &entries[i]
		}
	}
	return found
}
