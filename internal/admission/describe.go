package admission

import (
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/pipepath"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// describer puts findings about one input into words.
type describer struct {
	in *Input
}

// details describes every finding.
func (d *describer) details(findings []policy.Finding) []Detail {
	if len(findings) == 0 {
		return nil
	}
	out := make([]Detail, len(findings))
	for i, f := range findings {
		out[i] = Detail{Finding: f, Text: d.describe(f)}
		if t := d.target(f.Field); t != nil {
			out[i].Policies = t.Policies
		}
	}
	return out
}

// refusals are the details of findings that refuse.
func refusals(details []Detail) []Detail {
	return slices.DeleteFunc(slices.Clone(details), func(d Detail) bool { return !refuses(d.Finding) })
}

// describe says in a line what a finding is about, in the terms of the object: container, volume, path and fields.
func (d *describer) describe(f policy.Finding) string {
	if f.Message != "" {
		return withField(plain(f.Message, maxText), f.Field)
	}
	if m := d.mount(f.Field); m != nil {
		return d.describeMount(m)
	}
	if v := d.volume(f.Field); v != nil {
		return "volume " + quote(v.Volume, maxName) + ", which no container mounts, is " + describeTarget(&v.Target) +
			" (" + v.Field + ")" + v.Access.standing(nil)
	}
	if v := d.persistent(f.Field); v != nil {
		return describePersistent(v)
	}
	if c := d.container(f.Field); c != nil {
		s := withField(describeContainer(c.Name, c.Type), c.Field)
		if c.HostProcess && c.Access != nil {
			s += c.Access.standing(c)
		}
		return s
	}
	return withField("", f.Field)
}

func (d *describer) describeMount(m *Mount) string {
	var b strings.Builder
	b.WriteString(describeContainer(m.Container, m.ContainerType))
	b.WriteString(" mounts volume " + quote(m.Volume, maxName))
	if m.SubPath != "" {
		b.WriteString(" with subPath " + quote(m.SubPath, maxPath))
	}
	b.WriteString(": " + describeTarget(&m.Target) + " (" + m.Field + ", " + m.VolumeField + ")" + m.Access.standing(&Container{Name: m.Container, Image: m.Image, Privileged: m.Privileged}))
	return b.String()
}

func describePersistent(v *PersistentVolume) string {
	s := "the volume leads to " + describeTarget(&v.Target)
	if v.NeverAllowed && pipepath.Canonical(v.Path).Kind == pipepath.KindPath {
		s = "the volume leads to " + quote(v.Path, maxPath) + ", which the subPath of a mount may make the path of a pipe: take a directory below it"
	}
	if v.Claim != (Claim{}) {
		s += " and is for claim " + quote(v.Claim.Name, maxName) + " of namespace " + quote(v.Claim.Namespace, maxName)
	}
	return s + " (" + v.Field + ")"
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

// describeTarget gives the path as written, what it names where that is not the same, and who governs it.
func describeTarget(t *Target) string {
	s := quote(t.Path, maxPath)
	switch {
	case t.Canonical != "" && t.Canonical != t.Path:
		s += ", canonical form " + quote(t.Canonical, maxPath)
	case t.NeverAllowed:
		s += ", which names no single pipe"
	}
	return s + describePlace(t) + describeGovernors(t.Policies)
}

// describePlace says how a path stands to the guarded host path that it has to do with.
func describePlace(t *Target) string {
	path := "guarded host path " + quote(t.HostPath, maxPath)
	switch pipepath.Place(t.Place) {
	case pipepath.PlaceNone:
		return ""
	case pipepath.PlacePath:
		return ", a guarded host path"
	case pipepath.PlaceBeneath:
		return ", beneath " + path
	case pipepath.PlaceAbove:
		if t.HostPath == "" {
			return ", which may lead to every guarded host path"
		}
		return ", above " + path
	}
	return ""
}

// withField appends a field to what it is the field of.
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

// target is what the entry with that field names; nil if it names nothing.
func (d *describer) target(field string) *Target {
	if m := d.mount(field); m != nil {
		return &m.Target
	}
	if v := d.volume(field); v != nil {
		return &v.Target
	}
	if v := d.persistent(field); v != nil {
		return &v.Target
	}
	return nil
}

func (d *describer) mount(field string) *Mount {
	return find(d.in.Mounts, func(m *Mount) (string, bool) { return m.Field, m.Guarded }, field)
}

func (d *describer) volume(field string) *Volume {
	return find(d.in.Unmounted, func(v *Volume) (string, bool) { return v.Field, v.Guarded }, field)
}

func (d *describer) persistent(field string) *PersistentVolume {
	return find(d.in.PersistentVolumes, func(v *PersistentVolume) (string, bool) { return v.Field, v.Guarded }, field)
}

func (d *describer) container(field string) *Container {
	return find(d.in.Containers, func(c *Container) (string, bool) { return c.Field, true }, field)
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
