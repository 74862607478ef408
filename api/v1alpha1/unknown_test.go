package v1alpha1_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// A webhook reads what is stored, which may have been written under the CRDs of a later release. Lists and watches read each object
// by its own reader.
func TestFieldsOfALaterReleaseAreNoticed(t *testing.T) {
	for name, c := range map[string]struct{ object, unknown string }{
		"none":              {`{"metadata":{"name":"p"},"spec":{"pipes":["a"],"subjects":[{"name":"s","namespace":"n"}]}}`, ""},
		"in a subject":      {`{"metadata":{"name":"p"},"spec":{"subjects":[{"name":"s","zones":["a"]}]}}`, "spec.subjects[0].zones"},
		"in two places":     {`{"spec":{"more":1,"node":{"less":{"x":1}}}}`, "spec.more, spec.node.less"},
		"in another case":   {`{"spec":{"Pipes":["a"]}}`, "spec.Pipes"},
		"of the API server": {`{"metadata":{"name":"p","shard":"x"},"spec":{},"status":{"later":1},"specimen":{}}`, ""},
	} {
		var list v1alpha1.PipePolicyList
		if err := json.Unmarshal([]byte(`{"items":[`+c.object+`]}`), &list); err != nil || len(list.Items) != 1 {
			t.Fatalf("%s: %v, %+v", name, err, list)
		}
		if got := list.Items[0].Unknown; got != c.unknown {
			t.Errorf("%s: got %q, want %q", name, got, c.unknown)
		}
		if text, err := json.Marshal(list.Items[0].DeepCopy()); err != nil || strings.Contains(strings.ToLower(string(text)), "unknown") {
			t.Errorf("%s: written as %s, %v", name, text, err)
		}
	}
	var m v1alpha1.PolicyModule
	if err := json.Unmarshal([]byte(`{"spec":{"modules":[{"name":"a.rego","rego":"package a","only":"x"}],"parameters":{"any":{"thing":1}}}}`), &m); err != nil ||
		m.Unknown != "spec.modules[0].only" || m.Spec.Modules[0].Rego != "package a" {
		t.Errorf("%q, %v", m.Unknown, err)
	}
	if err := json.Unmarshal([]byte(`{"spec":{"modules":1}}`), &m); err == nil {
		t.Error("a number was read as a list")
	}
	if err := json.Unmarshal([]byte(`{"spec":{"modules":[]}}`), &m); err != nil || m.Unknown != "" {
		t.Errorf("what was read before is kept: %q, %v", m.Unknown, err)
	}
}
