package admission

import (
	"encoding/json"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// PolicyReader reads a PipePolicy by its name and its spec in JSON, as an object of the API is read. An error names the field that it is about.
type PolicyReader func(name string, spec []byte) (PipePolicy, []error)

// pipePolicies reads PipePolicies by name. Each has the shape of the API's spec.
func (f *faults) pipePolicies(path string, v any, read PolicyReader) map[string]PipePolicy {
	out := map[string]PipePolicy{}
	m, ok := v.(map[string]any)
	switch {
	case read == nil:
		f.add(path, "no PipePolicies are read here")
		return nil
	case !ok:
		f.add(path, "%s where a mapping of policies is expected", typeName(v))
		return nil
	}
	for _, name := range sortedKeys(m) {
		at := join(path, name)
		spec, ok := m[name].(map[string]any)
		if !ok {
			f.add(at, "%s where a mapping is expected", typeName(m[name]))
			continue
		}
		text, err := json.Marshal(spec)
		if err != nil {
			f.add(at, "%v", err)
			continue
		}
		p, errs := read(name, text)
		for _, err := range errs {
			f.add(at, "%v", err)
		}
		out[name] = p
	}
	return out
}

// Warnings returns the warnings of the PipePolicies, by name, and warns if guardedPipes covers no pipe of CSI Proxy or a namespace is allowed as a whole.
func (p Parameters) Warnings() (out []string) {
	folded := make([]string, len(p.GuardedPipes))
	for i, pattern := range p.GuardedPipes {
		folded[i] = pipepath.Fold(pattern)
	}
	if len(folded) > 0 && !access.GuardsCSIProxy(folded...) { // empty: no file was read
		out = append(out, "guardedPipes guards no pipe of CSI Proxy: their names begin with "+access.PipePrefix)
	}
	for _, name := range sortedKeys(p.AllowedNamespaces) {
		if len(p.AllowedNamespaces[name].ServiceAccounts) == 0 {
			out = append(out, "allowedNamespaces."+name+" allows every service account of the namespace: name those of the drivers in serviceAccounts")
		}
	}
	for _, name := range sortedKeys(p.PipePolicies) {
		for _, text := range p.PipePolicies[name].Warnings {
			out = append(out, "PipePolicy "+parameterPolicy(name)+": "+text)
		}
	}
	return out
}
