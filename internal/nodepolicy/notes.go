package nodepolicy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

// notes say what of the policies permits nothing on a node: what no node can express, what no caller and no path could be, and methods that its proxy is too old for.
func notes(d access.Document, served []access.API) (out []string) {
	for i := range d.Policies {
		p := &d.Policies[i]
		told := map[string]bool{}
		add := func(format string, args ...any) {
			if text := "PipePolicy " + p.Name + ": " + fmt.Sprintf(format, args...); !told[text] {
				told[text] = true
				out = append(out, text)
			}
		}
		for _, text := range ForAdmissionAlone(p) {
			add("%s", text)
		}
		open := slices.DeleteFunc(slices.Clone(served), func(a access.API) bool { return !p.Opens(a.Pipe()) })
		for j := range p.Subjects {
			noteSubject(&p.Subjects[j], p, open, add)
		}
	}
	return out
}

func noteSubject(s *access.Subject, p *access.Policy, open []access.API, add func(format string, args ...any)) {
	for _, m := range s.Methods {
		_, isBeyond := beyond(p, m)
		if len(open) > 0 && !isBeyond && !slices.ContainsFunc(open, func(a access.API) bool { return slices.Contains(a.Operations, m) }) {
			add("no pipe of this node has a method %s, so it permits nothing", m)
		}
	}
	for _, text := range s.Images {
		if _, err := access.SpellImage(text); err != nil {
			add("%v, so it permits nothing", err)
		}
	}
	for _, text := range s.PathPrefixes {
		if _, err := access.ParseDirectory(text); err != nil {
			add("%v, so it permits nothing", err)
		}
	}
}

// ForAdmissionAlone describes the parts of a policy that no node can apply, so that a caller which admission lets in is permitted less there: groups
// that a pattern covers without spelling them out, methods that belong to no pipe which the policy opens, and what the operations of CSI Proxy name where pipes
// of others are meant.
func ForAdmissionAlone(p *access.Policy) (notes []string) {
	for _, g := range access.Groups() {
		var closed []string
		for _, pipe := range g.Pipes() {
			if p.Guards(pipe) && !p.Opens(pipe) {
				closed = append(closed, pipe.Name())
			}
		}
		if len(closed) > 0 {
			notes = append(notes, fmt.Sprintf("a pattern covers %s without spelling out the group %s: they are guarded, and no node permits anything there; write %s%s-*",
				strings.Join(closed, " and "), g.Name, access.PipePrefix, g.Name))
		}
	}
	isForeign := slices.ContainsFunc(p.Pipes, func(pattern string) bool {
		return !strings.HasPrefix(pattern, strings.TrimSuffix(access.PipePrefix, "-"))
	})
	told := map[string]bool{}
	for i := range p.Subjects {
		s := &p.Subjects[i]
		for _, m := range s.Methods {
			if of, beyond := beyond(p, m); beyond && !told[m] {
				told[m] = true
				notes = append(notes, fmt.Sprintf("no pipe that it opens has the method %s: it is one of %s%s-*", m, access.PipePrefix, of))
			}
		}
		if isForeign && s.NamesOperations() {
			notes = append(notes, fmt.Sprintf("subject %s has methods, paths, shares or services, and is permitted nothing on pipes that are not CSI Proxy's: their operations are not known", s.Name))
		}
	}
	return notes
}

// beyond says whether a method belongs to a group of which the policy opens no pipe, and to which. A method that no group has is none of those.
func beyond(p *access.Policy, method string) (group string, ok bool) {
	for _, g := range access.Groups() {
		if slices.Contains(g.Methods, method) {
			return g.Name, !slices.ContainsFunc(g.Pipes(), p.Opens)
		}
	}
	return "", false
}
