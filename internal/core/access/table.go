package access

import (
	"slices"
	"time"
)

// API is a pipe that could be served, with its operations under their newest names. A pipe that is not of the node API
// has its full name for Group, and no operations: its methods are not known.
type API struct {
	Group, Version string
	Operations     []string
}

// Pipe is that of the API.
func (a API) Pipe() Pipe { return Pipe{a.Group, a.Version} }

// Table is a Document for the pipes of one node at a time.
type Table struct {
	*List
	// Until is when the next subject ends; zero if none does.
	Until time.Time

	guardedBy map[Pipe][]string
}

// NewTable makes a checked document ready. Each subject that has not ended is a rule, POLICY/SUBJECT.
func NewTable(d Document, served []API, now time.Time) *Table {
	t := &Table{guardedBy: map[Pipe][]string{}}
	modes := map[PipePattern]Mode{}
	var rules []Rule
	for i := range d.Policies {
		p := &d.Policies[i]
		var open, spelled []PipePattern
		for _, a := range served {
			pipe := a.Pipe()
			if !p.Guards(pipe) {
				continue
			}
			t.guardedBy[pipe] = append(t.guardedBy[pipe], p.Name)
			patterns, _ := patternsOf(a.Group, a.Version)
			exact, isOpen := patterns[0], p.Opens(pipe)
			if isOpen {
				open = append(open, exact)
			}
			if isOpen && p.Spells(pipe) {
				spelled = append(spelled, exact)
			}
			if !isOpen || !p.LogOnly {
				modes[exact] = Enforce
			} else if modes[exact] == "" { // of several policies the strictest counts
				modes[exact] = LogOnly
			}
		}
		for i := range p.Subjects {
			s := &p.Subjects[i]
			if s.HasEnded(now) {
				continue
			}
			if !s.ExpiresAt.IsZero() && (t.Until.IsZero() || s.End().Before(t.Until)) {
				t.Until = s.End()
			}
			if rule := s.rule(p.Name, open, spelled); len(rule.Pipes) > 0 {
				rules = append(rules, rule)
			}
		}
	}
	t.List = NewList(rules, modes, Limits{})
	return t
}

// rule is the subject's. What it says of operations, and of what they name, permits nothing on pipes of which they are not known.
func (s *Subject) rule(policy string, open, spelled []PipePattern) Rule {
	r := Rule{
		Name: policy + "/" + s.Name, Pipes: open, Spelled: spelled, Callers: []Pattern{s.Pattern()}, All: len(s.Methods) == 0, OthersFree: true,
		Operations: slices.DeleteFunc(slices.Clone(s.Methods), func(m string) bool { return !IsOperation(m) }),
		Permits:    s.Permits, Services: s.Services, Limits: s.Limits,
	}
	if s.NamesOperations() {
		r.Pipes = slices.DeleteFunc(slices.Clone(open), func(p PipePattern) bool { return IsFullName(p.Group) })
	}
	for _, text := range s.PathPrefixes {
		path, _ := ParseDirectory(text) // what is none holds nothing
		r.Paths = append(r.Paths, path)
	}
	for _, text := range s.Shares {
		share, _ := ParseShare(text)
		r.Shares = append(r.Shares, share)
	}
	return r
}

// GuardedBy returns the names of the policies that guard a pipe. The caller does not change them.
func (t *Table) GuardedBy(group, version string) []string { return t.guardedBy[Pipe{group, version}] }
