package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/configfile"
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
	write(t, file, string(text))
	c := configuration{}
	if _, err := c.read(file); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"minimumRevision": true, "required": true, "trustFirstUse": true} // whose value is the zero value
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
