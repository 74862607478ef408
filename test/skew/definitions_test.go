//go:build !windows

package skew

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// definitions are the CRDs of a release, by kind.
func (r release) definitions(t *testing.T) map[string]apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(r.file("config", "crd", "pipeguard.dev_*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		var d apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict([]byte(r.read(t, "config", "crd", filepath.Base(file))), &d); err != nil {
			t.Fatal(err)
		}
		out[d.Spec.Names.Kind] = d
	}
	if len(out) < 5 {
		t.Fatalf("%s has the CRDs %q", r.name, slices.Sorted(maps.Keys(out)))
	}
	return out
}

// fields are all that a schema says, by the path of the field and without the words for people.
func fields(d apiextensionsv1.CustomResourceDefinition) map[string]string {
	out := map[string]string{}
	var visit func(path string, s apiextensionsv1.JSONSchemaProps)
	visit = func(path string, s apiextensionsv1.JSONSchemaProps) {
		for name, of := range s.Properties {
			visit(strings.TrimPrefix(path+"."+name, "."), of)
		}
		if s.Items != nil && s.Items.Schema != nil {
			visit(path+"[]", *s.Items.Schema)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			visit(path+"{}", *s.AdditionalProperties.Schema)
		}
		s.Properties, s.Items, s.AdditionalProperties, s.Description = nil, nil, nil, ""
		text, err := yaml.Marshal(s)
		out[path] = fmt.Sprint(string(text), err)
	}
	for _, v := range d.Spec.Versions {
		visit(v.Name, *v.Schema.OpenAPIV3Schema)
	}
	return out
}

// A field that one of two CRDs lacks is dropped by the API server, and a rule that one of them lacks refuses. Each difference is a row of the page, so
// that its author has asked what the other release makes of it.
func TestWhatTheDefinitionsDifferInIsOnThePage(t *testing.T) {
	old, now := releases(t)
	text := page(t)
	before, after := old.definitions(t), now.definitions(t)
	for _, kind := range slices.Sorted(maps.Keys(after)) {
		a, b := fields(before[kind]), fields(after[kind])
		for _, path := range slices.Sorted(maps.Keys(union(a, b))) {
			if a[path] != b[path] {
				_, field, _ := strings.Cut(path, ".")
				t.Logf("%s %s differs", kind, path)
				listed(t, text, kind+": "+field)
			}
		}
	}
	for kind := range before {
		if _, ok := after[kind]; !ok {
			t.Errorf("the CRD of %s is gone", kind)
		}
	}
}

func union(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}
