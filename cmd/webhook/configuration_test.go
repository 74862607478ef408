package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/configfile"
	"github.com/pipeguard/pipeguard/test/harness"
)

var sampleFile = filepath.Join("..", "..", "config", "samples", "webhook.yaml")

func TestTheSampleHasTheDefaults(t *testing.T) {
	got, want := defaultConfiguration(), defaultConfiguration()
	if _, err := got.read(sampleFile); err != nil {
		t.Fatal(err)
	}
	want.APIVersion, want.Kind = configfile.APIVersion, configKind
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var none configuration // what the sample has is also said by the sample, and not only by the defaults
	if _, err := none.read(sampleFile); err != nil {
		t.Fatal(err)
	}
	none.Bundles.Serve = true // of a section that is a comment
	if diff := cmp.Diff(want, none); diff != "" {
		t.Error(diff)
	}
}

// Comments of the sample become settings when their mark is taken away.
func TestTheSampleHasEverySetting(t *testing.T) {
	text, err := os.ReadFile(sampleFile)
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`(?m)^( *)# ( *)(\w+:)( |$)`).ReplaceAll(text, []byte("$1$2$3$4"))
	file := filepath.Join(t.TempDir(), "webhook.yaml")
	harness.Replace(t, file, string(text))
	c := configuration{}
	if _, err := c.read(file); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"minimumRevision": true, "required": true, "trustFirstUse": true, "labelNodes": true} // whose value is the zero value
	var look func(reflect.Value)
	look = func(v reflect.Value) {
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Field(i).Tag.Get("yaml")
			switch {
			case f.Kind() == reflect.Struct:
				look(f)
			case f.IsZero() && !known[name]:
				t.Errorf("the sample has no %s", name)
			}
		}
	}
	look(reflect.ValueOf(c))
	if c.Bundles.Life != 168*time.Hour || len(c.Bundles.Pools) != 1 || !c.Bundles.Serve {
		t.Errorf("bundles %+v", c.Bundles)
	}
}

// helm checks the chart's value config as the webhook checks the file: the same keys, of the same types.
func TestTheChartKnowsEverySetting(t *testing.T) {
	type schema struct {
		Ref                  string `json:"$ref"`
		Type                 string
		Items                *schema
		AdditionalProperties *bool
		Properties           map[string]schema
	}
	var root struct {
		Properties, Definitions map[string]json.RawMessage
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "charts", "pipeguard", "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	if got := string(root.Properties["config"]); got != `{"$ref": "#/definitions/webhookConfig"}` {
		t.Errorf("config is %s", got)
	}
	var top schema
	if err := json.Unmarshal(root.Definitions["webhookConfig"], &top); err != nil {
		t.Fatal(err)
	}
	kinds := map[reflect.Type]string{
		reflect.TypeFor[string](): "#/definitions/text", reflect.TypeFor[time.Duration](): "#/definitions/duration", reflect.TypeFor[bool](): "boolean",
		reflect.TypeFor[uint64](): "#/definitions/revision", reflect.TypeFor[[]string](): "array#/definitions/text",
	}
	stricter := map[string]string{".logLevel": "string", ".floor.mode": "string", ".reports.standard": "string", ".bundles.pools": "#/definitions/pools"}
	var compare func(at string, of reflect.Type, s schema)
	compare = func(at string, of reflect.Type, s schema) {
		if of.Kind() != reflect.Struct {
			got := s.Ref + s.Type
			if s.Items != nil {
				got += s.Items.Ref
			}
			want := kinds[of]
			if kind, ok := stricter[at]; ok {
				want = kind
			}
			if got != want {
				t.Errorf("config%s is %q, want %q", at, got, want)
			}
			return
		}
		var want []string
		for i := range of.NumField() {
			f := of.Field(i)
			name := f.Tag.Get("yaml")
			if name == "apiVersion" || name == "kind" { // the chart's
				continue
			}
			want = append(want, name)
			compare(at+"."+name, f.Type, s.Properties[name])
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(s.Properties))); diff != "" || s.AdditionalProperties == nil || *s.AdditionalProperties || s.Type != "object" {
			t.Errorf("config%s: %s", at, diff)
		}
	}
	compare("", reflect.TypeFor[configuration](), top)
}
