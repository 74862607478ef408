package policyset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// many is a list of n elements, as JSON.
func many(n int, element string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

// withParameters is a module that is fit but for its parameters, perhaps.
func withParameters(name, parameters string) v1alpha1.PolicyModule {
	own := strings.NewReplacer("HOUSE1", strings.ToUpper(name)+"1", "house_test", name+"_test")
	m := module(name, "a.rego", own.Replace(goodRule), "a_test.rego", own.Replace(goodTest))
	m.Spec.Parameters = &apiextensionsv1.JSON{Raw: []byte(parameters)}
	return m
}

func TestParametersThatTheClusterWouldChangeOrThatTakeTooMuchAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": null}`:                                         "null",
		`{"a": [1, {"b": null}]}`:                             "null",
		`{"a": 12345678901234567891}`:                         "12345678901234567891",
		`{"a": 9223372036854775808}`:                          "9223372036854775808",
		`{"a": 1.00000000000000000001}`:                       "1.00000000000000000001",
		`{"a": 1e-400}`:                                       "1e-400",
		`{"a": 1e400}`:                                        "1e400",
		`{"a": -0.0}`:                                         "-0.0",
		`{"a": -0e0}`:                                         "-0e0",
		`{"a": 1e99999999999999999999}`:                       "1e99999999999999999999",
		`{"a": 1` + strings.Repeat("0", 400) + `}`:            "…",
		`{"n": ` + many(maxValues, "{}") + `}`:                "values",
		`{"n": "` + strings.Repeat("x", maxParameters) + `"}`: "bytes",
		`{"n": ` + strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting) + `}`: "nested",
		`{} {}`: "more than one",
		`{`:     "want an object",
		`[1]`:   "want an object",
	} {
		var sum parameterSum
		if _, err := sum.add(&apiextensionsv1.JSON{Raw: []byte(text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{
		``, `null`, `{}`, `{"a": 9223372036854775807, "b": -9223372036854775808, "c": 0.1, "d": 1e21, "f": 1.50, "g": 1E+2, "h": 5e-324, "i": 100000000000000000000}`,
		`{"n": ` + many(maxValues-4, "{}") + `}`,
	} {
		var sum parameterSum
		if _, err := sum.add(&apiextensionsv1.JSON{Raw: []byte(text)}); err != nil {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

// Each object is within the bounds, and all of them are not: none of them is to blame, and the one that comes last is refused.
func TestParametersOfAllModulesAreBoundedTogether(t *testing.T) {
	for name, text := range map[string]string{
		"values": `{"n": ` + many(maxValues-10, "{}") + `}`,
		"bytes":  `{"n": "` + strings.Repeat("x", maxParameters-100) + `"}`,
	} {
		var objects []any
		for _, object := range []string{"one", "two", "three", "four", "five"} {
			objects = append(objects, withParameters(object, text))
		}
		s := sources(t, objects...)
		if _, err := s.Assemble(); err == nil || !strings.Contains(err.Error(), "all PolicyModules together have") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		s.PolicyModules = s.PolicyModules[:4]
		if _, err := s.Assemble(); err != nil {
			t.Errorf("%s of four: %v", name, err)
		}
		fault, elsewhere := newTestValidator(t).Examine(t.Context(), s.WithPolicyModule(withParameters("five", text)), KindPolicyModule, "five")
		if fault == nil || elsewhere != nil || !strings.Contains(fault.Error(), "together") {
			t.Errorf("%s: a fifth module: %v, %v", name, fault, elsewhere)
		}
	}
}

func TestTheGuideNamesTheBoundsOfParameters(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "authors-guide.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("at most %d KiB and %d,000 values (keys, elements and what holds them), nested %d deep; all modules together at most %d MiB and %d,000 values",
		maxParameters>>10, maxValues/1000, maxNesting, maxAllParameters>>20, maxAllValues/1000)
	if !strings.Contains(strings.Join(strings.Fields(string(guide)), " "), want) {
		t.Errorf("the author's guide does not say: %s", want)
	}
}

// What is accepted is what policies in a cluster get: the API server decodes objects, and encodes them again.
func FuzzParametersAreTheSameInACluster(f *testing.F) {
	for _, text := range []string{`{"a": 0.1}`, `{"a": 1e21}`, `{"a": -0.0}`, `{"a": 100000000000000000000}`, `{"a": [true, "x", {"b": {}}]}`, `{"a": 4.35}`, `{"a": 1.7976931348623157e308}`, `{"a":1,"a":2}`, `{"a":"\ud800"}`, `{"":0}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var sum parameterSum
		here, err := sum.add(&apiextensionsv1.JSON{Raw: text})
		if err != nil || len(bytes.TrimSpace(text)) == 0 {
			return
		}
		var stored map[string]any
		if err := utiljson.Unmarshal(text, &stored); err != nil {
			t.Fatalf("%q: accepted, and the API server refuses it: %v", text, err)
		}
		encoded, err := json.Marshal(stored)
		if err != nil {
			t.Fatal(err)
		}
		there, err := (&parameterSum{}).add(&apiextensionsv1.JSON{Raw: encoded})
		if err != nil {
			t.Fatalf("%q becomes %q: %v", text, encoded, err)
		}
		if diff := cmp.Diff(normal(here), normal(there)); diff != "" {
			t.Errorf("%q becomes %q: %s", text, encoded, diff)
		}
	})
}

// normal gives equal numbers one text.
func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			out[key] = normal(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = normal(v[i])
		}
		return out
	case json.Number:
		return "number " + decimal(v.String())
	}
	return v
}
