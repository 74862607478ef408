package node

import (
	"slices"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// rules are those of one subject, named POLICY/SUBJECT. Operations that take paths have one of their own if the policy
// has directories: a rule with paths covers no other operation.
func (t *translation) rules(s *access.Subject) []acl.Rule {
	callers := t.callers(s)
	operations, confined := t.operations()
	if len(callers) == 0 {
		return nil
	}
	name := t.p.Name + "/" + s.Name
	var out []acl.Rule
	pipes := t.pipes
	if len(t.p.Methods) > 0 || len(t.p.PathPrefixes) > 0 {
		pipes = slices.DeleteFunc(slices.Clone(pipes), pipe.isForwarded)
		if len(pipes) < len(t.pipes) {
			t.noteOnce("methods and paths of forwarded pipes are not known here, so nothing is permitted on them")
		}
	}
	if len(pipes) == 0 {
		return nil
	}
	if len(operations) > 0 {
		out = append(out, acl.Rule{Name: name, Pipes: patterns(pipes), Implied: t.implied, Operations: operations, Callers: callers})
	}
	if paths := t.paths(); len(confined) > 0 && len(paths) > 0 { // no path that fits is no rule, not a rule for all paths
		out = append(out, acl.Rule{Name: name + "/paths", Pipes: patterns(pipes), Implied: t.implied, Operations: confined, Callers: callers, Paths: paths})
	}
	return out
}

func patterns(pipes []pipe) []string {
	out := make([]string, len(pipes))
	for i, p := range pipes {
		out[i] = p.pattern()
	}
	return out
}

// operations are what the policy permits, and of these apart what must stay within its directories.
func (t *translation) operations() (free, confined []string) {
	known := map[string]bool{}
	for _, p := range t.pipes {
		for _, operation := range t.known[p].Operations {
			known[operation] = true
		}
	}
	if len(t.p.Methods) == 0 && len(t.p.PathPrefixes) == 0 {
		return []string{"*"}, nil
	}
	methods := t.p.Methods
	if len(methods) == 0 {
		for operation := range known {
			methods = append(methods, operation)
		}
		slices.Sort(methods)
	}
	for _, m := range methods {
		switch {
		case !known[m]: // an older proxy than the policy, or a typing error
			t.noteOnce("no pipe of this node has a method %s, so it permits nothing", m)
		case len(t.p.PathPrefixes) > 0 && access.TakesPaths(m) > 0:
			confined = append(confined, m)
		default:
			free = append(free, m)
		}
	}
	return free, confined
}

// paths are the directories that can be compared.
func (t *translation) paths() []string {
	var out []string
	for _, path := range t.p.PathPrefixes {
		if isFit(acl.Rule{Callers: []acl.CallerPattern{{User: "S-1-5-18"}}, Paths: []string{path}}) {
			out = append(out, path)
		} else {
			t.noteOnce("path %q is none that calls could be held against, so it permits nothing", path)
		}
	}
	return out
}

// callers are all combinations of the lists of a subject.
func (t *translation) callers(s *access.Subject) []acl.CallerPattern {
	accounts := orAny(t.fit("service account", s.ServiceAccounts, func(v string) acl.CallerPattern {
		return acl.CallerPattern{Namespace: "n", ServiceAccount: v}
	}), s.ServiceAccounts)
	containers := orAny(t.fit("container", s.Containers, func(v string) acl.CallerPattern {
		return acl.CallerPattern{Namespace: "n", Container: v}
	}), s.Containers)
	images := orAny(t.fit("image", images(s.Images), func(v string) acl.CallerPattern {
		return acl.CallerPattern{Namespace: "n", Image: v}
	}), s.Images)
	var out []acl.CallerPattern
	for _, account := range accounts {
		for _, container := range containers {
			for _, image := range images {
				out = append(out, acl.CallerPattern{
					Namespace: s.Namespace, ServiceAccount: account, Container: container, Image: image,
					Assurance: "pod", Token: t.p.RequireToken,
				})
			}
		}
	}
	if len(out) > 0 && !isFitCaller(out[0]) { // the namespace, which all share
		t.note("subject %s: namespace %q is none, so it permits nothing", s.Name, s.Namespace)
		return nil
	}
	return out
}

// fit leaves out values that no caller could have: they permit nothing.
func (t *translation) fit(what string, values []string, pattern func(string) acl.CallerPattern) []string {
	var out []string
	for _, v := range values {
		if isFitCaller(pattern(v)) {
			out = append(out, v)
		} else {
			t.noteOnce("%s %q is none that a caller could have, so it permits nothing", what, v)
		}
	}
	return out
}

// orAny is any value if the list asks for none; a list of which nothing fits asks for what nobody has.
func orAny(fit, written []string) []string {
	if len(written) == 0 {
		return []string{""}
	}
	return fit
}

// images puts images into the words of the access list.
func images(written []string) (out []string) {
	for _, text := range written {
		patterns, err := access.SpellImage(text)
		if err != nil {
			patterns = []string{text} // to be named as unfit
		}
		for _, p := range patterns {
			if err == nil && access.IsImagePrefix(p) {
				p += "*"
			}
			out = append(out, p)
		}
	}
	return out
}

func isFitCaller(c acl.CallerPattern) bool { return isFit(acl.Rule{Callers: []acl.CallerPattern{c}}) }

// isFit asks package acl itself, so that there is one opinion on what a pattern is.
func isFit(r acl.Rule) bool {
	r.Name, r.Pipes, r.Operations = "x", []string{"*"}, []string{"*"}
	_, err := acl.New(acl.Spec{Rules: []acl.Rule{r}})
	return err == nil
}

func (t *translation) noteOnce(format string, args ...any) {
	n := len(t.notes)
	t.note(format, args...)
	if slices.Contains(t.notes[:n], t.notes[n]) {
		t.notes = t.notes[:n]
	}
}
