package admission

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/internal/atmost"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
	"github.com/pipeguard/pipeguard/internal/plainyaml"
)

// maxParameters bounds a parameters file. A list of a thousand namespaces takes about 100 KiB.
const maxParameters = 1 << 20

// ReadParameters returns the text of a parameters file.
func ReadParameters(file string) ([]byte, error) { return atmost.ReadAny(file, maxParameters) }

// LoadParameters reads a file of parameters in YAML. Errors name the file and list every fault in it.
func LoadParameters(file string, policies PolicyReader) (Parameters, error) {
	data, err := ReadParameters(file)
	if err != nil {
		return Parameters{}, fmt.Errorf("read parameters: %w", err)
	}
	p, err := ParseParameters(data, policies)
	if err != nil {
		return Parameters{}, fmt.Errorf("parameters %s: %w", file, err)
	}
	return p, nil
}

// ParseParameters reads parameters in YAML. A key that is left out keeps its default, an unknown or duplicate key is
// an error, and so is a file without content: it is more likely half-written than meant.
func ParseParameters(data []byte, policies PolicyReader) (Parameters, error) {
	if len(data) > maxParameters {
		return Parameters{}, fmt.Errorf("more than %d bytes", maxParameters)
	}
	if err := plainyaml.Check(data); err != nil {
		return Parameters{}, err
	}
	if line, err := plainyaml.Second(data); err != nil {
		return Parameters{}, err
	} else if line > 0 {
		return Parameters{}, fmt.Errorf("line %d: a second document (after ---); parameters are one", line)
	}
	var doc any
	if err := yaml.UnmarshalStrict(data, &doc); err != nil {
		return Parameters{}, fmt.Errorf("not valid YAML: %w", err)
	}
	if doc == nil {
		return Parameters{}, errors.New("the file is empty; to use the defaults, give no file")
	}
	p := DefaultParameters()
	var f faults
	f.members("", doc, map[string]func(string, any){
		"guardedPipes": func(path string, v any) { p.GuardedPipes = f.guardedPipes(path, v) },
		"requirement": func(path string, v any) {
			p.Requirement = choice(&f, path, v, PrivilegedOrAllowedNamespace, PrivilegedAndAllowedNamespace, AllowedNamespace)
		},
		"action": func(path string, v any) { p.Action = choice(&f, path, v, pipeActions...) },
		"allowedNamespaces": func(path string, v any) {
			p.AllowedNamespaces = f.allowedNamespaces(path, v, "leave it out to allow every account, or list the names")
		},
		"hostProcess": func(path string, v any) {
			p.HostProcess = choice(&f, path, v, hostActions...)
		},
		"hostProcessAllowed": func(path string, v any) {
			p.HostProcessAllowed = f.allowedNamespaces(path, v, "list the names")
			f.withAccounts(path, p.HostProcessAllowed)
		},
		"equalPower": func(path string, v any) {
			p.EqualPower = choice(&f, path, v, hostActions...)
		},
		"equalPowerPipes":  func(path string, v any) { p.EqualPowerPipes = f.patterns(path, v) },
		"equalPowerPaths":  func(path string, v any) { p.EqualPowerPaths = f.paths(path, v) },
		"hostPaths":        func(path string, v any) { p.HostPaths = choice(&f, path, v, hostActions...) },
		"guardedHostPaths": func(path string, v any) { p.GuardedHostPaths = f.paths(path, v) },
		"pipePolicies":     func(path string, v any) { p.PipePolicies = f.pipePolicies(path, v, policies) },
	})
	if err := errors.Join(f...); err != nil {
		return Parameters{}, err
	}
	return p, nil
}

// faults collects what is wrong with a document, so that its author hears all of it at once.
type faults []error

func (f *faults) add(path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	*f = append(*f, errors.New(text))
}

// members hands each member of a mapping to the reader of its key.
func (f *faults) members(path string, v any, readers map[string]func(path string, v any)) {
	m, ok := v.(map[string]any)
	if !ok {
		f.add(path, "%s where a mapping is expected", typeName(v))
		return
	}
	for _, key := range sortedKeys(m) {
		read, ok := readers[key]
		if !ok {
			f.add(path, "unknown key %q; known to this release are %s", key, strings.Join(sortedKeys(readers), ", "))
			continue
		}
		read(join(path, key), m[key])
	}
}

func (f *faults) texts(path string, v any) []string {
	entries, ok := v.([]any)
	if !ok {
		f.add(path, "%s where a list of strings is expected", typeName(v))
		return nil
	}
	out := make([]string, 0, len(entries))
	for i, e := range entries {
		s, ok := e.(string)
		if !ok {
			f.add(element(path, i), "%s where a string is expected", typeName(e))
			continue
		}
		out = append(out, s)
	}
	return out
}

func (f *faults) guardedPipes(path string, v any) []string {
	patterns := f.patterns(path, v)
	if len(patterns) == 0 {
		f.add(path, "at least one pattern is needed; without any, nothing would be guarded")
	}
	return patterns
}

// checked checks texts one by one, so that each fault is reported.
func (f *faults) checked(path string, v any, check func(string) error) []string {
	texts := f.texts(path, v)
	for i, text := range texts {
		if err := check(text); err != nil {
			f.add(element(path, i), "%v", err)
		}
	}
	return texts
}

func (f *faults) patterns(path string, v any) []string {
	return f.checked(path, v, func(s string) error { _, err := pipepath.NewGuard(s); return err })
}

func (f *faults) paths(path string, v any) []string {
	return f.checked(path, v, func(s string) error { _, err := pipepath.ParseDirectory(s); return err })
}

func (f *faults) allowedNamespaces(path string, v any, remedy string) map[string]Subjects {
	out := map[string]Subjects{}
	if v == nil {
		return out
	}
	m, ok := v.(map[string]any)
	if !ok {
		f.add(path, "%s where a mapping of namespaces is expected", typeName(v))
		return nil
	}
	for _, name := range sortedKeys(m) {
		at := join(path, name)
		f.label(at, name)
		var s Subjects
		if m[name] == nil { // also what a file has that is cut off here
			f.add(at, "there is no value; name service accounts, as {serviceAccounts: [NAME]}")
			continue
		}
		f.members(at, m[name], map[string]func(string, any){
			"serviceAccounts": func(path string, v any) {
				if v == nil {
					f.add(path, "there is no value; %s", remedy)
					return
				}
				s.ServiceAccounts = f.serviceAccounts(path, v)
			},
		})
		out[name] = s
	}
	return out
}

// withAccounts reports namespaces without service accounts.
func (f *faults) withAccounts(path string, namespaces map[string]Subjects) {
	for _, name := range sortedKeys(namespaces) {
		if len(namespaces[name].ServiceAccounts) == 0 {
			f.add(join(path, name), "names no service account, and would allow none")
		}
	}
}

func (f *faults) serviceAccounts(path string, v any) []string {
	accounts := f.texts(path, v)
	f.names(path, "service account", accounts, caller.IsSubdomain)
	for i, a := range accounts {
		if a == "" {
			f.add(element(path, i), "%s is not the name of a service account", quote(a, maxName))
		}
	}
	return accounts
}

func choice[T ~string](f *faults, path string, v any, options ...T) T {
	s, ok := v.(string)
	if !ok || !slices.Contains(options, T(s)) {
		names := make([]string, len(options))
		for i, o := range options {
			names[i] = string(o)
		}
		if list := strings.Join(names, ", "); v == nil {
			f.add(path, "there is no value; leave it out, or write one of %s", list)
		} else {
			f.add(path, "%v is none of %s", v, list)
		}
	}
	return T(s)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	}
	return "a number"
}
