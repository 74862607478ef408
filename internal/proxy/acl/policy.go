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
	*access.List
	spec     Spec
	revision string
	modes    []access.PipePattern // of spec.Modes
	rules    []access.Rule        // of spec.Rules
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
	return &Policy{List: access.NewList(nil, nil, access.Limits{}), revision: revisionOf(Spec{})}
}

// New compiles spec. The error is of type Faults and names every fault.
func New(spec Spec) (*Policy, error) {
	var faults Faults
	p := &Policy{spec: spec.clone(), revision: revisionOf(spec)}
	spec.Limits.Check(faults.below("limits"))
	seen, modes := map[string]bool{}, map[access.PipePattern]access.Mode{}
	for i, m := range spec.Modes {
		field := fmt.Sprintf("pipes[%d]", i)
		pipe, err := access.ParsePipe(m.Pipe)
		if err != nil {
			faults.add(field+".pipe", "%v", err)
		}
		if seen[m.Pipe] {
			faults.add(field+".pipe", "pipe %q has a mode already", m.Pipe)
		}
		seen[m.Pipe] = true
		if m.Mode != access.Enforce && m.Mode != access.LogOnly {
			faults.add(field+".mode", "mode %q: want %s or %s", m.Mode, access.Enforce, access.LogOnly)
		}
		p.modes = append(p.modes, pipe)
		if modes[pipe] != access.Enforce { // of two spellings of one pattern the stricter holds
			modes[pipe] = m.Mode
		}
	}
	names := map[string]bool{}
	for i, r := range spec.Rules {
		p.rules = append(p.rules, compile(fmt.Sprintf("rules[%d]", i), r, names, &faults))
	}
	if len(faults) > 0 {
		return nil, faults
	}
	p.List = access.NewList(p.rules, modes, spec.Limits)
	return p, nil
}

func compile(field string, r Rule, names map[string]bool, faults *Faults) access.Rule {
	switch {
	case strings.TrimSpace(r.Name) == "":
		faults.add(field+".name", "a rule needs a name: audit records refer to it")
	case names[r.Name]:
		faults.add(field+".name", "name %q is taken by another rule", r.Name)
	}
	names[r.Name] = true
	out := access.Rule{Name: r.Name, Limits: r.Limits, Permits: slices.Clone(r.Permits)}
	if len(r.Pipes) == 0 {
		faults.add(field+".pipes", "is empty: the rule would allow nothing")
	}
	if len(r.Operations) == 0 {
		faults.add(field+".operations", "is empty: the rule would allow nothing")
	}
	if len(r.Callers) == 0 {
		faults.add(field+".callers", "is empty: the rule would allow nothing")
	}
	for j, text := range r.Pipes {
		pipe, err := access.ParsePipe(text)
		if err != nil {
			faults.add(fmt.Sprintf("%s.pipes[%d]", field, j), "%v", err)
		}
		out.Pipes = append(out.Pipes, pipe)
		if pipe.Group != "" && !access.IsFullName(pipe.Group) {
			out.Spelled = append(out.Spelled, pipe)
		}
	}
	for j, name := range r.Operations {
		if name != "*" && !access.IsOperation(name) && !access.IsMethod(name) {
			faults.add(fmt.Sprintf("%s.operations[%d]", field, j), "operation %q: want *, a name such as CreateSymlink, or /package.Service/Method", name)
		}
	}
	out.All = slices.Contains(r.Operations, "*")
	out.Operations = slices.DeleteFunc(slices.Clone(r.Operations), func(name string) bool { return name == "*" })
	for j, text := range r.Callers {
		c, wrong := parseCaller(text)
		for _, err := range wrong {
			faults.add(fmt.Sprintf("%s.callers[%d]", field, j), "%v", err)
		}
		out.Callers = append(out.Callers, c)
	}
	for j, name := range r.Permits {
		if err := access.CheckPermit(name, r.Shares); err != nil {
			faults.add(fmt.Sprintf("%s.permits[%d]", field, j), "%v", err)
		}
	}
	for j, text := range r.Paths {
		path, err := access.ParseDirectory(text)
		if err != nil {
			faults.add(fmt.Sprintf("%s.paths[%d]", field, j), "%v", err)
		}
		out.Paths = append(out.Paths, path)
	}
	if r.Paths != nil && len(r.Paths) == 0 {
		faults.add(field+".paths", "is empty: leave it out to allow every path")
	}
	compileNames(field, r, &out, faults)
	r.Limits.Check(faults.below(field + ".limits"))
	return out
}

func compileNames(field string, spec Rule, r *access.Rule, faults *Faults) {
	for j, text := range spec.Shares {
		s, err := access.ParseShare(text)
		if err != nil {
			faults.add(fmt.Sprintf("%s.shares[%d]", field, j), "%v", err)
		}
		r.Shares = append(r.Shares, s)
	}
	for j, name := range spec.Services {
		if err := access.CheckService(name); err != nil {
			faults.add(fmt.Sprintf("%s.services[%d]", field, j), "%v", err)
		}
		r.Services = append(r.Services, name)
	}
	if spec.Shares != nil && len(spec.Shares) == 0 {
		faults.add(field+".shares", "is empty: leave it out to allow every share")
	}
	if spec.Services != nil && len(spec.Services) == 0 {
		faults.add(field+".services", "is empty: leave it out to allow every service")
	}
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
		r.Paths, r.Shares, r.Services = slices.Clone(r.Paths), slices.Clone(r.Shares), slices.Clone(r.Services)
	}
	return s
}
