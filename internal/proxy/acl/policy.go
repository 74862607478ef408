package acl

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

// Policy is a compiled Spec. It never changes, and may be asked by many goroutines.
type Policy struct {
	spec     Spec
	revision string
	modes    []pipeMode
	rules    []rule
	limits   access.Limits

	// What follows is derived from the above, so that a decision need not look at every rule.
	modeOf     map[pipePattern]Mode
	pipes      map[pipePattern]*pipeOperations
	callers    index
	isConfined bool              // some rule has paths, shares or services
	spelled    map[spelling]bool // what rules name somebody for
}

type pipeMode struct {
	pipe pipePattern
	mode Mode
}

type rule struct {
	name       string
	pipes      []pipePattern
	spelled    []pipePattern // those of pipes whose group is spelled out
	all        bool          // "*" is among the operations
	operations []string      // the others
	callers    []callerPattern
	permits    []string
	paths      []place
	shares     []access.Share
	services   []string
	limits     access.Limits
	countedAs  string
	reason     string
}

// Fault is something wrong with a Spec.
type Fault struct {
	Field   string // rules[0].callers[1].exe, or as near as it can be said
	Problem string
}

func (f Fault) Error() string { return f.Field + ": " + f.Problem }

// Faults are all faults of a Spec, in its order.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults one by one.
func (f Faults) Unwrap() []error {
	errs := make([]error, len(f))
	for i, fault := range f {
		errs[i] = fault
	}
	return errs
}

func (f *Faults) add(field, format string, args ...any) {
	*f = append(*f, Fault{field, fmt.Sprintf(format, args...)})
}

// below adds faults of what a field holds.
func (f *Faults) below(field string) func(name, format string, args ...any) {
	return func(name, format string, args ...any) { f.add(field+"."+name, format, args...) }
}

// DenyAll is the policy without rules.
func DenyAll() *Policy {
	return &Policy{revision: revisionOf(Spec{})} // empty maps hold nothing
}

// New compiles spec. The error is of type Faults and names every fault.
func New(spec Spec) (*Policy, error) {
	var faults Faults
	p := &Policy{spec: spec.clone(), revision: revisionOf(spec), limits: spec.Limits}
	spec.Limits.Check(faults.below("limits"))
	seen := map[string]bool{}
	for i, m := range spec.Modes {
		field := fmt.Sprintf("pipes[%d]", i)
		pipe, err := parsePipe(m.Pipe)
		if err != nil {
			faults.add(field+".pipe", "%v", err)
		}
		if seen[m.Pipe] {
			faults.add(field+".pipe", "pipe %q has a mode already", m.Pipe)
		}
		seen[m.Pipe] = true
		if m.Mode != Enforce && m.Mode != LogOnly {
			faults.add(field+".mode", "mode %q: want %s or %s", m.Mode, Enforce, LogOnly)
		}
		p.modes = append(p.modes, pipeMode{pipe, m.Mode})
	}
	names := map[string]bool{}
	for i, r := range spec.Rules {
		p.rules = append(p.rules, compile(fmt.Sprintf("rules[%d]", i), r, names, &faults))
	}
	if len(faults) > 0 {
		return nil, faults
	}
	p.derive()
	return p, nil
}

func compile(field string, r Rule, names map[string]bool, faults *Faults) rule {
	switch {
	case strings.TrimSpace(r.Name) == "":
		faults.add(field+".name", "a rule needs a name: audit records refer to it")
	case names[r.Name]:
		faults.add(field+".name", "name %q is taken by another rule", r.Name)
	}
	names[r.Name] = true
	out := rule{name: r.Name, limits: r.Limits, countedAs: r.CountedAs, reason: "allowed by rule " + r.Name}
	if len(r.Pipes) == 0 {
		faults.add(field+".pipes", "is empty: the rule would allow nothing")
	}
	if len(r.Operations) == 0 {
		faults.add(field+".operations", "is empty: the rule would allow nothing")
	}
	if len(r.Callers) == 0 && r.Subject == nil {
		faults.add(field+".callers", "is empty: the rule would allow nothing")
	}
	for j, text := range r.Pipes {
		pipe, err := parsePipe(text)
		if err != nil {
			faults.add(fmt.Sprintf("%s.pipes[%d]", field, j), "%v", err)
		}
		out.pipes = append(out.pipes, pipe)
		if pipe.group != "" && !isFullName(pipe.group) && !slices.Contains(r.Implied, text) {
			out.spelled = append(out.spelled, pipe)
		}
	}
	for j, text := range r.Implied {
		if !slices.Contains(r.Pipes, text) { // spelled in another way it would imply nothing
			faults.add(fmt.Sprintf("%s.implied[%d]", field, j), "pipe %q is not among the pipes of the rule", text)
		}
	}
	for j, name := range r.Operations {
		if name != "*" && !isOperation(name) && !isMethod(name) {
			faults.add(fmt.Sprintf("%s.operations[%d]", field, j), "operation %q: want *, a name such as CreateSymlink, or /package.Service/Method", name)
		}
	}
	out.all = slices.Contains(r.Operations, "*")
	out.operations = slices.DeleteFunc(slices.Clone(r.Operations), func(name string) bool { return name == "*" })
	for j, text := range r.Callers {
		c, wrong := parseCaller(text)
		for _, err := range wrong {
			faults.add(fmt.Sprintf("%s.callers[%d]", field, j), "%v", err)
		}
		out.callers = append(out.callers, c)
	}
	if r.Subject != nil {
		c, wrong := parseSubject(r.Subject)
		for _, err := range wrong {
			faults.add(field+".subject", "%v", err)
		}
		out.callers = append(out.callers, c)
	}
	for j, name := range r.Permits {
		if err := access.CheckPermit(name, r.Shares); err != nil {
			faults.add(fmt.Sprintf("%s.permits[%d]", field, j), "%v", err)
		}
	}
	out.permits = slices.Clone(r.Permits)
	for j, text := range r.Paths {
		path, err := parsePath(text)
		if err != nil {
			faults.add(fmt.Sprintf("%s.paths[%d]", field, j), "%v", err)
		}
		out.paths = append(out.paths, path)
	}
	if r.Paths != nil && len(r.Paths) == 0 {
		faults.add(field+".paths", "is empty: leave it out to allow every path")
	}
	out.compileNames(field, r, faults)
	r.Limits.Check(faults.below(field + ".limits"))
	return out
}

func isOperation(s string) bool {
	for i, r := range s {
		upper, lower, digit := r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r >= '0' && r <= '9'
		if i == 0 && !upper || !upper && !lower && !digit {
			return false
		}
	}
	return s != ""
}

// Revision names the content of the policy: "sha256:" and the first 16 hexadecimal digits.
func (p *Policy) Revision() string { return p.revision }

func revisionOf(spec Spec) string {
	text, err := json.Marshal(spec)
	if err != nil { // strings and lists of strings only
		panic(err)
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:8])
}

func (s Spec) clone() Spec {
	s.Modes, s.Rules = slices.Clone(s.Modes), slices.Clone(s.Rules)
	for i := range s.Rules {
		r := &s.Rules[i]
		r.Pipes, r.Operations, r.Callers, r.Permits = slices.Clone(r.Pipes), slices.Clone(r.Operations), slices.Clone(r.Callers), slices.Clone(r.Permits)
		r.Paths, r.Shares, r.Services, r.Implied = slices.Clone(r.Paths), slices.Clone(r.Shares), slices.Clone(r.Services), slices.Clone(r.Implied)
		if r.Subject != nil {
			subject := *r.Subject
			subject.ServiceAccounts, subject.Containers, subject.Images = slices.Clone(subject.ServiceAccounts), slices.Clone(subject.Containers), slices.Clone(subject.Images)
			r.Subject = &subject
		}
	}
	return s
}
