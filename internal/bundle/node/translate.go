package node

import (
	"maps"
	"slices"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// rules are those of one subject, named POLICY/SUBJECT. Operations that take paths have one of their own if the subject
// has directories: a rule with paths covers no other operation.
func (t *translation) rules(s *access.Subject) []acl.Rule {
	caller := t.caller(s)
	operations, confined := t.operations(s)
	if caller == nil {
		return nil
	}
	pipes := t.pipes
	if s.NamesOperations() {
		pipes = slices.DeleteFunc(slices.Clone(pipes), access.Pipe.IsForwarded)
	}
	if len(pipes) == 0 {
		return nil
	}
	rule := acl.Rule{
		Name: t.p.Name + "/" + s.Name, Pipes: patterns(pipes), Implied: t.implied, Subject: caller,
		Permits: s.Permits, Shares: s.Shares, Services: s.Services, Limits: s.Limits, CountedAs: t.p.Name + "/" + s.Name,
	}
	if len(s.Methods) == 0 { // it spells no operation out
		rule.Implied = patterns(slices.DeleteFunc(slices.Clone(pipes), access.Pipe.IsForwarded))
	}
	var out []acl.Rule
	if len(operations) > 0 {
		rule.Operations = operations
		out = append(out, rule)
	}
	if paths := t.paths(s); len(confined) > 0 && len(paths) > 0 { // no path that fits is no rule, not a rule for all paths
		rule.Name, rule.Operations, rule.Paths = rule.Name+"/paths", confined, paths
		out = append(out, rule)
	}
	return out
}

func patterns(pipes []access.Pipe) []string {
	out := make([]string, len(pipes))
	for i, p := range pipes {
		out[i] = pattern(p)
	}
	return out
}

// operations are what the subject may call, and of these apart what must stay within its directories.
func (t *translation) operations(s *access.Subject) (free, confined []string) {
	known := map[string]bool{}
	for _, p := range t.pipes {
		for _, operation := range t.known[p].Operations {
			known[operation] = true
		}
	}
	if len(s.Methods) == 0 && len(s.PathPrefixes) == 0 {
		return []string{"*"}, nil
	}
	methods := s.Methods
	if len(methods) == 0 {
		methods = slices.Sorted(maps.Keys(known))
	}
	for _, m := range methods {
		switch {
		case !known[m]: // an older proxy than the policy, unless no node could have it
			if _, beyond := t.p.Beyond(m); !beyond {
				t.noteOnce("no pipe of this node has a method %s, so it permits nothing", m)
			}
		case len(s.PathPrefixes) > 0 && access.TakesPaths(m) > 0:
			confined = append(confined, m)
		default:
			free = append(free, m)
		}
	}
	return free, confined
}

// paths are the directories that can be compared.
func (t *translation) paths(s *access.Subject) []string {
	var out []string
	for _, path := range s.PathPrefixes {
		if isFit(acl.Rule{Callers: []acl.CallerPattern{{User: "S-1-5-18"}}, Paths: []string{path}}) {
			out = append(out, path)
		} else {
			t.noteOnce("path %q is none that calls could be held against, so it permits nothing", path)
		}
	}
	return out
}

// caller is the subject without the values that no caller could have; nil if no caller could match it.
func (t *translation) caller(s *access.Subject) *access.Subject {
	is := &access.Subject{Namespace: s.Namespace, Permission: access.Permission{RequireToken: s.RequireToken}}
	if !isFitCaller(*is) {
		t.note("subject %s: namespace %q is none, so it permits nothing", s.Name, s.Namespace)
		return nil
	}
	is.ServiceAccounts = t.fit("service account", s.ServiceAccounts, func(v []string) access.Subject { return access.Subject{ServiceAccounts: v} })
	is.Containers = t.fit("container", s.Containers, func(v []string) access.Subject { return access.Subject{Containers: v} })
	is.Images = t.fit("image", s.Images, func(v []string) access.Subject { return access.Subject{Images: v} })
	for _, list := range [][2][]string{{s.ServiceAccounts, is.ServiceAccounts}, {s.Containers, is.Containers}, {s.Images, is.Images}} {
		if len(list[0]) > 0 && len(list[1]) == 0 { // of which nothing fits: as it is it would be any
			return nil
		}
	}
	return is
}

// fit leaves out values that no caller could have: they permit nothing.
func (t *translation) fit(what string, values []string, subject func([]string) access.Subject) []string {
	var out []string
	for _, v := range values {
		alone := subject([]string{v})
		alone.Namespace = "n"
		if isFitCaller(alone) {
			out = append(out, v)
		} else {
			t.noteOnce("%s %q is none that a caller could have, so it permits nothing", what, v)
		}
	}
	return out
}

func isFitCaller(s access.Subject) bool { return isFit(acl.Rule{Subject: &s}) }

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
