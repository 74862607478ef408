package admission

import "encoding/json"

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
		f.nulls(at, spec)
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

// nulls refuses keys without a value. They would be taken as not there, and a list or a node that is not there permits anything, as an end that is not there is never.
func (f *faults) nulls(path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			at := join(path, key)
			if v[key] == nil {
				f.add(at, "there is no value; leave it out, or give it one")
			}
			f.nulls(at, v[key])
		}
	case []any:
		for i := range v {
			f.nulls(element(path, i), v[i])
		}
	}
}

// Warnings are those of the PipePolicies, by name.
func (p Parameters) Warnings() (out []string) {
	for _, name := range sortedKeys(p.PipePolicies) {
		for _, text := range p.PipePolicies[name].Warnings {
			out = append(out, "PipePolicy "+parameterPolicy(name)+": "+text)
		}
	}
	return out
}
