package acl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

// Warnings are faults that stop nothing: rules that never decide, steps that are never permitted, and callers that are
// more than they may seem. They are in the order of the rules.
func (p *Policy) Warnings() Faults {
	var w Faults
	for i, m := range p.modes {
		if m.mode == LogOnly {
			w.add(fmt.Sprintf("pipes[%d]", i), "%s is in mode LogOnly: whoever can open it is served", p.spec.Modes[i].Pipe)
		}
	}
	if len(p.rules) == 0 {
		w.add("rules", "there are none, so every call is denied")
	}
	for i := range p.rules {
		field := fmt.Sprintf("rules[%d]", i)
		if by := p.shadow(i); by >= 0 {
			w.add(field, "never decides: rule %s comes before it and covers all that it does%s", p.rules[by].name, p.lost(i, by))
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
	r := &p.rules[i]
	for _, by := range p.namedBefore(i) {
		if p.rules[by].includes(r) && p.rules[by].namesAllOf(r) {
			return by
		}
	}
	return -1
}

// namedBefore returns the rules before i that have a caller who includes the first caller of i. A pattern is looked up
// as if it were a caller.
func (p *Policy) namedBefore(i int) (rules []int) {
	p.callers.each(p.rules[i].callers[0].keys()[0], func(b *bucketOfRules) {
		for _, e := range b.entries {
			if e.rule >= i || len(rules) > mostCompared {
				break
			}
			rules = append(rules, e.rule)
		}
	})
	slices.Sort(rules)
	return rules
}

// mostCompared bounds the work on lists in which thousands of rules name one caller.
const mostCompared = 2000

// includes says that r covers every call that o does. It may say no where yes would be right.
func (r *rule) includes(o *rule) bool {
	for _, pipe := range o.pipes {
		if !slices.ContainsFunc(r.pipes, func(p pipePattern) bool { return p.includes(pipe) }) {
			return false
		}
	}
	if o.all && !r.all {
		return false
	}
	for _, op := range o.operations {
		known := r.all && !strings.Contains(op, "/")
		if !known && !slices.Contains(r.operations, op) {
			return false
		}
	}
	for i := range o.paths {
		if len(r.paths) > 0 && !r.holdsPath(&o.paths[i], false) {
			return false
		}
	}
	if len(o.paths) == 0 && len(r.paths) > 0 {
		return false
	}
	for i := range o.callers {
		if !slices.ContainsFunc(r.callers, func(c callerPattern) bool { return c.includes(&o.callers[i]) }) {
			return false
		}
	}
	return r.includesNames(o)
}

func (p pipePattern) includes(o pipePattern) bool {
	if isFullName(p.group) || isFullName(o.group) {
		return p == o
	}
	if o.group == "" {
		return p.group == "" && (p.version == "" || p.version == o.version)
	}
	version := o.version
	if version == "" && p.version != "" {
		return false
	}
	return p.covers(o.group, version)
}

func (p *callerPattern) includes(o *callerPattern) bool {
	exe := o.exe == p.exe || isExeDir(p.exe) && strings.HasPrefix(o.exe, p.exe)
	within := func(list, wanted []string, covers func(pattern, value string) bool) bool {
		return len(list) == 0 || len(wanted) > 0 && !slices.ContainsFunc(wanted, func(value string) bool {
			return !slices.ContainsFunc(list, func(pattern string) bool { return pattern == value || covers(pattern, value) })
		})
	}
	no := func(string, string) bool { return false }
	return p.least <= o.least && (p.user == "" || p.user == o.user) && (p.exe == "" || exe) && (p.namespace == "" || p.namespace == o.namespace) &&
		within(p.accounts, o.accounts, no) && within(p.containers, o.containers, no) && within(p.images, o.images, access.CoversImage) &&
		(p.hostProcess == nil || o.hostProcess != nil && *p.hostProcess == *o.hostProcess) && (!p.token || o.token)
}

// lost names what a rule that never decides would have permitted.
func (p *Policy) lost(i, by int) string {
	var lost []string
	for _, name := range p.rules[i].permits {
		if !slices.Contains(p.rules[by].permits, name) {
			lost = append(lost, name)
		}
	}
	if len(lost) == 0 {
		return ""
	}
	return ", and does not permit " + strings.Join(lost, ", ")
}

// namesAllOf says whether r, which includes o, names every caller that o names, for whatever o names it.
func (r *rule) namesAllOf(o *rule) bool {
	of := map[spelling]bool{}
	if o.spell(of); len(of) == 0 {
		return true
	}
	return !slices.ContainsFunc(o.spelled, func(pipe pipePattern) bool {
		return !slices.ContainsFunc(r.spelled, func(by pipePattern) bool { return by.includes(pipe) })
	}) && !slices.ContainsFunc(o.operations, func(op string) bool {
		return isOperation(op) && !slices.Contains(r.operations, op)
	}) && !slices.ContainsFunc(o.callers, func(c callerPattern) bool {
		return c.isName && !slices.ContainsFunc(r.callers, func(by callerPattern) bool { return by.isName && by.includes(&c) })
	})
}

func (p *Policy) warnPermits(field string, i int, w *Faults) {
	r := &p.rules[i]
	for j, name := range r.permits {
		reachable := slices.ContainsFunc(access.PermitUses(name), func(op string) bool {
			return (r.all || slices.Contains(r.operations, op)) && (len(r.paths) == 0 || access.TakesPaths(op) > 0)
		})
		if !reachable {
			w.add(fmt.Sprintf("%s.permits[%d]", field, j), "%s is for %s, which this rule does not allow", name, strings.Join(access.PermitUses(name), ", "))
		}
	}
}

func (p *Policy) warnPaths(field string, i int, w *Faults) {
	r := &p.rules[i]
	if len(r.paths) == 0 {
		return
	}
	if r.all {
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
	for j := range r.callers {
		at, c := fmt.Sprintf("%s.callers[%d]", field, j), &r.callers[j]
		name, isContainer := containerUsers[c.user]
		hasAccount := len(c.accounts) > 0
		switch {
		case isContainer && c.namespace == "" && c.exe == "":
			w.add(at, "is every process-isolated container of the node that runs as %s, of whatever pod: name a namespace", name)
		case isContainer && c.namespace == "":
			w.add(at, "a path within a container is the choice of whoever made its image: name a namespace")
		case c.user == "" && c.namespace == "" && c.exe != "":
			w.add(at, "is that program under any account, in a container that has it mounted too: name a user")
		case c.namespace != "" && !hasAccount && r.all:
			w.add(at, "* for every pod of namespace %s: name a service account, or the operations", c.namespace)
		case c.namespace != "" && !hasAccount:
			w.add(at, "is every pod of namespace %s: name a service account", c.namespace)
		case c.namespace != "" && r.all:
			w.add(field+".operations", "* for a container covers FormatVolume and what a later version adds: name the operations")
		}
		if slices.ContainsFunc(c.images, func(image string) bool { return !strings.Contains(image, "sha256:") }) {
			w.add(at+".image", "a name is what the registry says it is today: a digest cannot be moved")
		}
	}
}
