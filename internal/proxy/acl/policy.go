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
	out := access.Rule{Name: r.Name, Limits: r.Limits}
	for _, f := range []struct {
		name   string
		length int
	}{{"pipes", len(r.Pipes)}, {"operations", len(r.Operations)}, {"callers", len(r.Callers)}} {
		if f.length == 0 {
			faults.add(field+"."+f.name, "is empty: the rule would allow nothing")
		}
	}
	out.Pipes = parseEach(faults, field+".pipes", r.Pipes, access.ParsePipe)
	for _, pipe := range out.Pipes {
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
	out.Permits = parseEach(faults, field+".permits", r.Permits, func(name string) (string, error) { return name, access.CheckPermit(name, r.Shares) })
	out.Paths = parseEach(faults, field+".paths", r.Paths, access.ParseDirectory)
	out.Shares = parseEach(faults, field+".shares", r.Shares, access.ParseShare)
	out.Services = parseEach(faults, field+".services", r.Services, func(name string) (string, error) { return name, access.CheckService(name) })
	for _, f := range []struct {
		name, one string
		list      []string
	}{{"paths", "path", r.Paths}, {"shares", "share", r.Shares}, {"services", "service", r.Services}} {
		if f.list != nil && len(f.list) == 0 {
			faults.add(field+"."+f.name, "is empty: leave it out to allow every %s", f.one)
		}
	}
	r.Limits.Check(faults.below(field + ".limits"))
	return out
}

// parseEach parses the entries of a field.
func parseEach[T any](faults *Faults, field string, texts []string, parse func(string) (T, error)) (parsed []T) {
	for i, text := range texts {
		one, err := parse(text)
		if err != nil {
			faults.add(fmt.Sprintf("%s[%d]", field, i), "%v", err)
		}
		parsed = append(parsed, one)
	}
	return parsed
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
