package policyset

import (
	gojson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

// Add takes a policy object as JSON. An object of another kind, or with fields that its type does not have, is an error.
func (s *Sources) Add(apiVersion, kind string, raw []byte) error {
	if apiVersion != v1alpha1.GroupVersion().String() {
		return fmt.Errorf("%s %s is no policy object", apiVersion, kind)
	}
	switch kind {
	case KindPipePolicy:
		var p v1alpha1.PipePolicy
		if err := decodeNew(raw, &p, &p.ObjectMeta); err != nil {
			return err
		}
		if err := errors.Join(nullsOf(raw)...); err != nil {
			return err
		}
		s.PipePolicies = append(s.PipePolicies, p)
	case KindPolicyModule:
		var m v1alpha1.PolicyModule
		if err := decodeNew(raw, &m, &m.ObjectMeta); err != nil {
			return err
		}
		s.PolicyModules = append(s.PolicyModules, m)
	default:
		return fmt.Errorf("%s %s is no policy object", apiVersion, kind)
	}
	return nil
}

// nullsOf refuses keys of a spec, or of an object with one, that have no value. The API server takes them for keys that are not there, and a list that is not
// there permits anything, as an end that is not there is never.
func nullsOf(raw []byte) (faults []error) {
	var v any
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, &v); err != nil {
		return []error{err}
	}
	if object, ok := v.(map[string]any); ok && object["spec"] != nil {
		v = map[string]any{"spec": object["spec"]} // metadata decides nothing
	}
	walk("", v, func(path string, v any) {
		if v == nil {
			faults = append(faults, fmt.Errorf("%s: there is no value; leave it out, or give it one", path))
		}
	})
	return faults
}

// walk visits what a JSON value consists of, each part with the path of its field.
func walk(path string, v any, visit func(path string, v any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			walk(strings.TrimPrefix(path+"."+key, "."), v[key], visit)
		}
	case []any:
		for i := range v {
			walk(fmt.Sprintf("%s[%d]", path, i), v[i], visit)
		}
	default:
		visit(path, v)
	}
}

// decodeNew reads an object that is about to be stored.
func decodeNew(raw []byte, into any, meta *metav1.ObjectMeta) error {
	if err := Decode(raw, into); err != nil {
		return err
	}
	return CheckMetadata(meta).ToAggregate()
}

// Decode reads one JSON object as the API server does, by the exact case of its keys, and strictly: a field that the type does not have would mean nothing, and an author who wrote
// it meant something.
func Decode(raw []byte, into any) error {
	strict, err := json.UnmarshalStrict(raw, plain(into))
	if err = errors.Join(append(strict, named(err, raw))...); err != nil {
		return fmt.Errorf("read the object: %w", err)
	}
	return nil
}

// plain is an object by its fields alone: its own reader passes over fields that its type does not have.
func plain(into any) any {
	type (
		pipePolicy   v1alpha1.PipePolicy
		policyModule v1alpha1.PolicyModule
	)
	switch o := into.(type) {
	case *v1alpha1.PipePolicy:
		return (*pipePolicy)(o)
	case *v1alpha1.PolicyModule:
		return (*policyModule)(o)
	}
	return into
}

// typeNames are the types of values in an author's words, by their names in errors of the decoder and by the kinds of Go's types.
var typeNames = map[string]string{
	"bool": "a boolean", "number": "a number", "int32": "a number", "int64": "a number", "string": "a string",
	"array": "a list", "slice": "a list", "object": "a mapping", "struct": "a mapping", "map": "a mapping",
}

// named gives an error of the decoder about a value the path of its field, in place of the names of Go's types.
func named(err error, raw []byte) error {
	if e, ok := errors.AsType[*gojson.UnmarshalTypeError](err); ok && e.Field != "" {
		got, _, _ := strings.Cut(e.Value, " ")
		text := fmt.Sprintf("%s: %s where %s is expected", e.Field, typeNames[got], typeNames[e.Type.Kind().String()])
		if got == "bool" {
			text += "; YAML takes y, yes, no, on, off and the like for booleans: a text is in quotes"
		}
		return errors.New(text)
	}
	e, ok := errors.AsType[*time.ParseError](err)
	var object any
	if !ok || json.UnmarshalCaseSensitivePreserveInts(raw, &object) != nil {
		return err
	}
	walk("", object, func(path string, v any) {
		if v == e.Value {
			err = fmt.Errorf("%s: %q: want a time in RFC 3339, such as 2027-01-31T00:00:00Z", path, e.Value)
		}
	})
	return err
}

// ReadPipePolicy reads the spec of a PipePolicy in JSON, by the rules of an object of the API. It is the admission.PolicyReader of parameters.
func ReadPipePolicy(name string, spec []byte) (admission.PipePolicy, []error) {
	p := v1alpha1.PipePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := Decode(spec, &p.Spec); err != nil {
		return admission.PipePolicy{}, []error{err}
	}
	faults := nullsOf(spec)
	for _, fault := range CheckPipePolicy(&p) {
		if at, isWithin := strings.CutPrefix(fault.Field, "spec."); isWithin {
			fault.Field = at
			faults = append(faults, fault)
		} else { // the text names the field
			faults = append(faults, errors.New(fault.Detail))
		}
	}
	out := pipePolicy(&p)
	if len(faults) == 0 {
		out.Warnings = Warnings(&p, time.Now())
	}
	return out, faults
}
