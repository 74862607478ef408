package v1alpha1

import (
	"strings"

	"sigs.k8s.io/json"
)

// UnmarshalJSON reads a PipePolicy, and notes in Unknown which fields of its spec this release does not have.
func (p *PipePolicy) UnmarshalJSON(raw []byte) (err error) {
	type plain PipePolicy // without this method
	p.Unknown, err = unmarshal(raw, (*plain)(p))
	return err
}

// UnmarshalJSON reads a PolicyModule, and notes in Unknown which fields of its spec this release does not have.
func (m *PolicyModule) UnmarshalJSON(raw []byte) (err error) {
	type plain PolicyModule // without this method
	m.Unknown, err = unmarshal(raw, (*plain)(m))
	return err
}

// unmarshal returns the paths of fields of the spec that the type does not have. Those of metadata and status decide nothing.
func unmarshal(raw []byte, into any) (unknown string, err error) {
	strict, err := json.UnmarshalStrict(raw, into, json.DisallowUnknownFields)
	var paths []string
	for _, fault := range strict {
		if at, ok := fault.(json.FieldError); ok && strings.HasPrefix(at.FieldPath(), "spec.") { //nolint:errorlint // none is wrapped
			paths = append(paths, at.FieldPath())
		}
	}
	return strings.Join(paths, ", "), err
}
