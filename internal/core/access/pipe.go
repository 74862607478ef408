package access

import (
	"fmt"
	"slices"
	"strings"
)

// FullName is what the full name of a pipe begins with.
const FullName = `\\.\pipe\`

// Pipe is a pipe of a node: a version of a group of the node API, or one that is forwarded, whose group is its full name and which has no version.
type Pipe struct{ Group, Version string }

// Name is the name that PipePolicies use, in lower case.
func (p Pipe) Name() string {
	if full, ok := strings.CutPrefix(p.Group, FullName); ok {
		return strings.ToLower(full)
	}
	return PipePrefix + p.Group + "-" + p.Version
}

// IsForwarded says whether the pipe is none of the node API.
func (p Pipe) IsForwarded() bool { return IsFullName(p.Group) }

// Guards says whether the policy guards a pipe, as at admission.
func (p *Policy) Guards(pipe Pipe) bool { return slices.ContainsFunc(p.Pipes, pipe.isGuardedBy) }

// Opens says whether what the policy permits holds for a pipe too. csi-proxy* guards system-v1, and permits nothing there.
func (p *Policy) Opens(pipe Pipe) bool { return slices.ContainsFunc(p.Pipes, pipe.isOpenedBy) }

// Spells says whether a pattern that opens the pipe spells out its group: csi-proxy-disk-v1 and csi-proxy-disk-* do, csi-proxy-d* and csi-proxy-disk* do not.
func (p *Policy) Spells(pipe Pipe) bool {
	return slices.ContainsFunc(p.Pipes, func(pattern string) bool {
		return pipe.isOpenedBy(pattern) && strings.HasPrefix(pattern, PipePrefix+pipe.Group+"-")
	})
}

func (p Pipe) isGuardedBy(pattern string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(p.Name(), prefix)
	}
	return p.Name() == pattern
}

func (p Pipe) isOpenedBy(pattern string) bool {
	return p.isGuardedBy(pattern) && (!MustBeSpelled(p.Group) || strings.HasPrefix(pattern, PipePrefix+p.Group))
}

// ForAdmissionAlone says in sentences what of the policy no node can express, so that a caller which admission lets in is permitted less there: groups
// that a pattern covers without spelling them out, methods that belong to no pipe which the policy opens, and what the operations of CSI Proxy name where pipes
// of others are meant.
func (p *Policy) ForAdmissionAlone() (notes []string) {
	for _, g := range groups {
		var closed []string
		for _, version := range g.Versions {
			if pipe := (Pipe{g.Name, version}); p.Guards(pipe) && !p.Opens(pipe) {
				closed = append(closed, pipe.Name())
			}
		}
		if len(closed) > 0 {
			notes = append(notes, fmt.Sprintf("a pattern covers %s without spelling out the group %s: they are guarded, and no node permits anything there; write %s%s-*",
				strings.Join(closed, " and "), g.Name, PipePrefix, g.Name))
		}
	}
	isForeign := slices.ContainsFunc(p.Pipes, func(pattern string) bool {
		return !strings.HasPrefix(pattern, strings.TrimSuffix(PipePrefix, "-"))
	})
	told := map[string]bool{}
	for i := range p.Subjects {
		s := &p.Subjects[i]
		for _, m := range s.Methods {
			if of, beyond := p.Beyond(m); beyond && !told[m] {
				told[m] = true
				notes = append(notes, fmt.Sprintf("no pipe that it opens has the method %s: it is one of %s%s-*", m, PipePrefix, of))
			}
		}
		if isForeign && s.NamesOperations() {
			notes = append(notes, fmt.Sprintf("subject %s has methods, paths, shares or services, and is permitted nothing on pipes that are not CSI Proxy's: their operations are not known", s.Name))
		}
	}
	return notes
}

// Beyond says whether a method belongs to a group of which the policy opens no pipe, and to which. A method that no group has is none of those.
func (p *Policy) Beyond(method string) (group string, ok bool) {
	at := slices.IndexFunc(groups, func(g Group) bool { return g.Name == groupOf[method] })
	if at < 0 {
		return "", false
	}
	g := groups[at]
	return g.Name, !slices.ContainsFunc(g.Versions, func(version string) bool { return p.Opens(Pipe{g.Name, version}) })
}
