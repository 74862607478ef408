package admission

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/policies"
)

// schemaOf returns the JSON schema that is shipped for the input.
func schemaOf(t *testing.T) map[string]any {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal(policies.InputSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// conforms is as much of JSON Schema as says that the members of objects are those of the schema.
func conforms(t *testing.T, at string, schema map[string]any, v any) {
	t.Helper()
	if ref, ok := schema["$ref"].(string); ok {
		root := schemaOf(t)
		for _, key := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			root = root[key].(map[string]any)
		}
		schema = root
	}
	switch v := v.(type) {
	case map[string]any:
		members, ok := schema["properties"].(map[string]any)
		if !ok {
			return
		}
		for key, member := range v {
			s, ok := members[key].(map[string]any)
			if !ok {
				t.Errorf("%s.%s is not in the schema", at, key)
				continue
			}
			conforms(t, at+"."+key, s, member)
		}
		required, _ := schema["required"].([]any)
		for _, key := range required {
			if _, ok := v[key.(string)]; !ok {
				t.Errorf("%s.%s is required by the schema and missing", at, key)
			}
		}
	case []any:
		if items, ok := schema["items"].(map[string]any); ok {
			for i, e := range v {
				conforms(t, fmt.Sprintf("%s[%d]", at, i), items, e)
			}
		}
	}
}

// randomInput is what policies receive of a generated object, and the object.
func randomInput(t *testing.T, scope *Scope, r *rand.Rand) (in *Input, raw []byte) {
	t.Helper()
	_, raw = randomObject(t, r)
	req, err := ObjectReview(raw)
	if err != nil {
		t.Fatal(err)
	}
	obj, err := readObject(raw, req.Kind, plenty())
	if err != nil {
		t.Fatal(err)
	}
	e, err := extract(scope, &obj, plenty())
	if err != nil {
		t.Fatal(err)
	}
	if in, err = scope.input(req, &obj, &e, nil, clock, plenty()); err != nil {
		t.Fatal(err)
	}
	return in, raw
}

func TestValueIsTheInputAsJSONAndConformsToTheSchema(t *testing.T) {
	scope := testScope(t, overlapping())
	for seed := range uint64(300) {
		in, _ := randomInput(t, scope, rand.New(rand.NewPCG(seed, 2)))
		got := in.value(nil, everyField)
		// Through JSON, absent maps and lists are null; a policy finds them empty.
		complete(in)
		want, err := policy.ToValue(in)
		if err != nil {
			t.Fatal(err)
		}
		if got.Compare(want) != 0 {
			t.Fatalf("seed %d: value\n%v\ndiffers from the input's JSON\n%v", seed, got, want)
		}
		var document any
		if err := json.Unmarshal(marshal(t, in), &document); err != nil {
			t.Fatal(err)
		}
		conforms(t, "input", schemaOf(t), document)
	}
}

// complete replaces the nil maps and slices of an input by empty ones.
func complete(in *Input) {
	for _, v := range []reflect.Value{reflect.ValueOf(in).Elem(), reflect.ValueOf(&in.Pod).Elem()} {
		for _, f := range v.Fields() {
			switch {
			case f.Kind() == reflect.Map && f.IsNil():
				f.Set(reflect.MakeMap(f.Type()))
			case f.Kind() == reflect.Slice && f.IsNil():
				f.Set(reflect.MakeSlice(f.Type(), 0, 0))
			}
		}
	}
	if in.User.Groups == nil {
		in.User.Groups = []string{}
	}
}
