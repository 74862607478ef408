package admission

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// maxTargets bounds the targets in one record; a pod of CSI drivers has up to nine.
const maxTargets = 16

// standing is how much a target has to do with the decision. The author of an object chooses how many others stand beside a guarded pipe, and in which
// order, so what decided is named first.
type standing uint8

const (
	refusedPipe standing = iota // a guarded pipe, or one that policies govern, and a finding that refuses it
	guardedPipe                 // such a pipe, with another finding or none: it may have been permitted
	refusedLead                 // what may lead to guarded pipes without naming one, and is refused
	guardedLead
	refused // another path, such as one of equal power
	found
	powerful // of equal power, without a finding
	other
	standings
)

func standingOf(t *Target, hasFinding, isRefused bool) standing {
	guarded := t.Guarded || t.NeverAllowed || len(t.Policies) > 0
	switch {
	case guarded && t.Pipe != "" && isRefused:
		return refusedPipe
	case guarded && t.Pipe != "":
		return guardedPipe
	case guarded && isRefused:
		return refusedLead
	case guarded:
		return guardedLead
	case isRefused:
		return refused
	case hasFinding:
		return found
	case t.EqualPower != "":
		return powerful
	}
	return other
}

// entry is a target of an input, with what the mount goes on to below it and the fields that findings may have about it.
type entry struct {
	*Target
	subPath string
	fields  [2]string
}

// maxWritten bounds the text of a path in bytes, as a record and the comparison of targets have it. A path may have megabytes, and each of thousands of mounts a
// subPath of it.
const maxWritten = 4 << 10

// written is the whole path as the object has it: what a subPath adds may be what matters. Of a longer text it is the beginning, with the mark of what is cut.
func (e entry) written() (text string, isWhole bool) {
	if e.subPath == "" {
		return clipPath(e.Path, 0)
	}
	separator := `\`
	if strings.Contains(e.Path, "/") && !strings.Contains(e.Path, `\`) {
		separator = "/"
	}
	volume := strings.TrimRight(e.Path, `\/`)
	whole := len(volume) + 1 + len(e.subPath)
	volume = volume[:min(len(volume), maxWritten)]
	text = volume + separator + e.subPath[:min(len(e.subPath), maxWritten-len(volume))]
	return clipPath(text, whole-len(text))
}

// isLong says that a record may not have all of an entry, without making its text.
func (e entry) isLong() bool { return max(len(e.Path)+1+len(e.subPath), len(e.Canonical)) > maxWritten }

// clipPath cuts a text that is too long, or of which so many bytes are gone already.
func clipPath(text string, gone int) (clipped string, isWhole bool) {
	if len(text) <= maxWritten && gone == 0 {
		return text, true
	}
	end := min(len(text), maxWritten)
	for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	return audit.Cut(text[:end], len(text)-end+gone), false
}

// target is what a record says of an entry, and whether it has all of it.
func (e entry) target() (t audit.Target, isWhole bool) {
	value, isWhole := e.written()
	canonical, isWholeToo := clipPath(e.Canonical, 0)
	switch kind := pipepath.Kind(e.Kind); {
	case e.subPath == "" || kind == pipepath.KindPipe:
	case kind == pipepath.KindPath || kind == pipepath.KindDrive:
		canonical = pipepath.Canonical(value).Canonical // the volume's own says nothing of what is below it
	case !isWhole:
		canonical = "" // that of what leads to pipes says nothing of where
	}
	return audit.Target{Kind: e.Kind, Value: value, Canonical: canonical}, isWhole && isWholeToo
}

// entries are the targets of an input, in the object's order.
func (in *Input) entries() iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for i := range in.Mounts {
			if m := &in.Mounts[i]; !yield(entry{&m.Target, m.SubPath, [2]string{m.Field, m.VolumeField}}) {
				return
			}
		}
		for i := range in.Unmounted {
			if v := &in.Unmounted[i]; !yield(entry{Target: &v.Target, fields: [2]string{v.Field}}) {
				return
			}
		}
		for i := range in.PersistentVolumes {
			if v := &in.PersistentVolumes[i]; !yield(entry{Target: &v.Target, fields: [2]string{v.Field}}) {
				return
			}
		}
	}
}

// targets are those that a record names, each once, and how many more there are: those that decided first, in the object's order. Of what is guarded, each
// pipe is named once before any is named in another spelling, or with what is written below it.
func targets(in *Input, findings []policy.Finding) (named []audit.Target, more int) {
	refusing := make(map[string]bool, len(findings)) // by field
	for _, f := range findings {
		refusing[f.Field] = refusing[f.Field] || refuses(f)
	}
	ordered := make([][]entry, standings)
	for e := range in.entries() {
		hasFinding, isRefused := false, false
		for _, field := range e.fields {
			refuses, has := refusing[field]
			hasFinding, isRefused = hasFinding || has && field != "", isRefused || refuses && field != ""
		}
		s := standingOf(e.Target, hasFinding, isRefused)
		ordered[s] = append(ordered[s], e)
	}
	known := map[audit.Target]bool{}
	add := func(e entry) {
		if more == audit.MaxMoreTargets {
			return
		}
		target, isWhole := e.target()
		switch {
		case isWhole && known[target]:
			return
		case len(named) < maxTargets:
			named = append(named, target)
		default:
			more++
		}
		if isWhole {
			known[target] = true
		}
	}
	pipes := map[string]bool{}
	for _, e := range slices.Concat(ordered[refusedPipe], ordered[guardedPipe]) {
		if e.isLong() {
			continue
		}
		if name, _, _ := strings.Cut(e.Pipe, `\`); !pipes[name] && len(named) < maxTargets {
			pipes[name] = true
			add(e)
		}
	}
	for _, list := range ordered {
		for _, e := range list {
			add(e)
		}
	}
	return named, more
}

// guardedFirst puts the built-in findings about guarded pipes, and about the object as a whole, before the other built-in ones. Readers are shown the first ones, and told
// the first that refuses: no number of other paths and containers can push a guarded pipe out of sight. Findings of additions stay behind those of the base.
func guardedFirst(in *Input, findings []policy.Finding) []policy.Finding {
	if len(findings) < 2 {
		return findings
	}
	guarded := map[string]bool{} // by field
	for e := range in.entries() {
		guarded[e.fields[0]] = guarded[e.fields[0]] || standingOf(e.Target, false, false) <= guardedLead
	}
	place := func(f policy.Finding) int {
		switch {
		case !strings.HasPrefix(f.Code, "PG"):
			return 2
		case f.Field != "" && !guarded[f.Field]:
			return 1
		}
		return 0
	}
	ordered := slices.Clone(findings)
	slices.SortStableFunc(ordered, func(a, b policy.Finding) int { return cmp.Compare(place(a), place(b)) })
	return ordered
}
