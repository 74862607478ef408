package acl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// Warnings are faults that do not make a list invalid: rules that never decide, steps that are never permitted, and callers
// that cover more than they may seem to. They are in the order of the rules.
func (p *Policy) Warnings() Faults {
	var w Faults
	for i, m := range p.spec.Modes {
		if m.Mode == access.LogOnly {
			w.add(fmt.Sprintf("pipes[%d]", i), "%s is in mode LogOnly: every process that can open it is served", m.Pipe)
		}
	}
	for i := range p.rules {
		field := fmt.Sprintf("rules[%d]", i)
		if by := p.shadow(i); by >= 0 {
			w.add(field, "never decides: rule %s comes before it and covers all that it does%s", p.rules[by].Name, p.lost(i, by))
			continue
		}
		p.warnPaths(field, i, &w)
		p.warnPermits(field, i, &w)
		p.warnNames(field, i, &w)
		p.warnCallers(field, i, &w)
	}
	return w
}

// shadow returns a rule before i that covers every call that i does, or -1. It looks for one rule alone: what several
// cover together goes unnoticed.
func (p *Policy) shadow(i int) int {
	r, compared := &p.rules[i], 0
	for by := range p.rules[:i] {
		before := &p.rules[by]
		if !slices.ContainsFunc(before.Callers, func(c access.Pattern) bool { return c.Includes(&r.Callers[0]) }) {
			continue
		}
		if compared++; compared > mostCompared {
			break
		}
		if includes(before, r) && namesAllOf(before, r) {
			return by
		}
	}
	return -1
}

// mostCompared bounds the work on lists in which thousands of rules name one caller.
const mostCompared = 2000

// includes says that r covers every call that o does. It may say no where yes would be right.
func includes(r, o *access.Rule) bool {
	for _, op := range o.Operations {
		known := r.All && !strings.Contains(op, "/")
		if !known && !slices.Contains(r.Operations, op) {
			return false
		}
	}
	return (r.All || !o.All) && coversAll(r.Pipes, o.Pipes, pipeIncludes) &&
		coversAll(r.Callers, o.Callers, func(a, b access.Pattern) bool { return a.Includes(&b) }) &&
		(len(r.Paths) == 0 || len(o.Paths) > 0 && coversAll(r.Paths, o.Paths, func(a, b access.Directory) bool { return a.Holds(&b) })) &&
		(len(r.Shares) == 0 || len(o.Shares) > 0 && coversAll(r.Shares, o.Shares, access.Share.Includes)) &&
		(len(r.Services) == 0 || len(o.Services) > 0 && coversAll(r.Services, o.Services, safepath.EqualFold))
}

// coversAll says that each of others is covered by one of list.
func coversAll[T any](list, others []T, covers func(one, other T) bool) bool {
	return !slices.ContainsFunc(others, func(other T) bool {
		return !slices.ContainsFunc(list, func(one T) bool { return covers(one, other) })
	})
}

func pipeIncludes(p, o access.PipePattern) bool {
	if access.IsFullName(p.Group) || access.IsFullName(o.Group) {
		return p == o
	}
	if o.Group == "" {
		return p.Group == "" && (p.Version == "" || p.Version == o.Version)
	}
	if o.Version == "" && p.Version != "" {
		return false
	}
	return p.Covers(o.Group, o.Version)
}

// lost names what a rule that never decides would have permitted.
func (p *Policy) lost(i, by int) string {
	var lost []string
	for _, name := range p.rules[i].Permits {
		if !slices.Contains(p.rules[by].Permits, name) {
			lost = append(lost, name)
		}
	}
	if len(lost) == 0 {
		return ""
	}
	return ", and does not permit " + strings.Join(lost, ", ")
}

// namesAllOf says whether r, which includes o, names every caller that o names, for whatever o names it.
func namesAllOf(r, o *access.Rule) bool {
	isName := func(c access.Pattern) bool { return len(c.Names()) > 0 }
	if !slices.ContainsFunc(o.Callers, isName) || len(o.Spelled) == 0 || !slices.ContainsFunc(o.Operations, access.IsOperation) {
		return true
	}
	return coversAll(r.Spelled, o.Spelled, pipeIncludes) && !slices.ContainsFunc(o.Operations, func(op string) bool {
		return access.IsOperation(op) && !slices.Contains(r.Operations, op)
	}) && coversAll(r.Callers, o.Callers, func(by, c access.Pattern) bool { return !isName(c) || isName(by) && by.Includes(&c) })
}

func (p *Policy) warnPermits(field string, i int, w *Faults) {
	r := &p.rules[i]
	for j, name := range r.Permits {
		reachable := slices.ContainsFunc(access.PermitUses(name), func(op string) bool {
			return (r.All || slices.Contains(r.Operations, op)) && (len(r.Paths) == 0 || access.TakesPaths(op) > 0)
		})
		if !reachable {
			w.add(fmt.Sprintf("%s.permits[%d]", field, j), "%s is for %s, which this rule does not allow", name, strings.Join(access.PermitUses(name), ", "))
		}
	}
}

func (p *Policy) warnPaths(field string, i int, w *Faults) {
	r := &p.rules[i]
	if len(r.Paths) == 0 {
		return
	}
	if r.All {
		w.add(field+".operations", "* with paths covers only operations that name a path: not Rescan, FormatVolume and others")
	}
	for j, name := range p.spec.Rules[i].Operations {
		if name != "*" && access.TakesPaths(name) == 0 {
			w.add(fmt.Sprintf("%s.operations[%d]", field, j), "%s names no path, so a rule with paths never covers it", name)
		}
	}
}

// containerUsers are the users of process-isolated containers, the same in all of them:
// https://learn.microsoft.com/virtualization/windowscontainers/manage-containers/container-security
var containerUsers = map[string]string{"S-1-5-93-2-1": "ContainerAdministrator", "S-1-5-93-2-2": "ContainerUser"}

func (p *Policy) warnCallers(field string, i int, w *Faults) {
	r := &p.rules[i]
	for j := range r.Callers {
		at, c := fmt.Sprintf("%s.callers[%d]", field, j), &r.Callers[j]
		name, isContainer := containerUsers[c.User]
		hasAccount := len(c.Accounts) > 0
		switch {
		case isContainer && c.Namespace == "" && c.Exe == "":
			w.add(at, "is every process-isolated container of the node that runs as %s, of whatever pod: name a namespace", name)
		case isContainer && c.Namespace == "":
			w.add(at, "a path within a container is the choice of its image's author: name a namespace")
		case c.User == "" && c.Namespace == "" && c.Exe != "":
			w.add(at, "is that program under any account, in a container that has it mounted too: name a user")
		case c.Namespace != "" && !hasAccount && r.All:
			w.add(at, "* for every pod of namespace %s: name a service account, or the operations", c.Namespace)
		case c.Namespace != "" && !hasAccount:
			w.add(at, "is every pod of namespace %s: name a service account", c.Namespace)
		case c.Namespace != "" && r.All:
			w.add(field+".operations", "* for a container covers FormatVolume and what a later version adds: name the operations")
		}
		if slices.ContainsFunc(c.Images, func(image string) bool { return !strings.Contains(image, "sha256:") }) {
			w.add(at+".image", "a name is what the registry says it is today: a digest cannot be moved")
		}
	}
}

// warnNames finds lists of shares and services without effect.
func (p *Policy) warnNames(field string, i int, w *Faults) {
	r := &p.rules[i]
	has := func(takes func(operation string) bool) bool { return r.All || slices.ContainsFunc(r.Operations, takes) }
	if len(r.Shares) > 0 && !has(access.TakesShares) {
		w.add(field+".shares", "confines nothing: no operation of this rule names a share")
	}
	if len(r.Services) > 0 && !has(access.TakesServices) {
		w.add(field+".services", "confines nothing: no operation of this rule names a service")
	}
}
