package main

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

type valueSchema struct {
	Ref                  string                 `json:"$ref"`
	Type                 string                 `json:"type"`
	AdditionalProperties *bool                  `json:"additionalProperties"`
	Properties           map[string]valueSchema `json:"properties"`
	Items                *valueSchema           `json:"items"`
}

// The chart's value config is checked before anything is installed, by the fields that the webhook reads.
func TestTheChartKnowsTheConfiguration(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "charts", "pipeguard", "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var chart struct {
		Properties struct {
			Config valueSchema `json:"config"`
		} `json:"properties"`
		Definitions struct {
			WebhookConfig valueSchema `json:"webhookConfig"`
		} `json:"definitions"`
	}
	if err := json.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	const identity = 2 // apiVersion and kind, which the chart sets
	var compare func(path string, is reflect.Type, s valueSchema, skip int)
	compare = func(path string, is reflect.Type, s valueSchema, skip int) {
		want := map[reflect.Kind]string{
			reflect.String: "text", reflect.Int64: "span", reflect.Bool: "boolean", reflect.Uint64: "integer", reflect.Slice: "array", reflect.Struct: "object",
		}[is.Kind()]
		if path == "config.logLevel" {
			want = "string" // of four words
		}
		if got := cmp.Or(s.Type, strings.TrimPrefix(s.Ref, "#/definitions/")); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
			return
		}
		switch is.Kind() {
		case reflect.Slice:
			compare(path+"[]", is.Elem(), *s.Items, 0)
		case reflect.Struct:
			if s.AdditionalProperties == nil || *s.AdditionalProperties || len(s.Properties) != is.NumField()-skip {
				t.Errorf("%s takes %d keys, or any, and the webhook %d", path, len(s.Properties), is.NumField()-skip)
			}
			for i := skip; i < is.NumField(); i++ {
				f := is.Field(i)
				compare(path+"."+f.Tag.Get("yaml"), f.Type, s.Properties[f.Tag.Get("yaml")], 0)
			}
		case reflect.Int64:
			if is != reflect.TypeFor[time.Duration]() {
				t.Errorf("%s is a number that is no duration", path)
			}
		}
	}
	if ref := chart.Properties.Config.Ref; ref != "#/definitions/webhookConfig" {
		t.Errorf("the value config is %q", ref)
	}
	compare("config", reflect.TypeFor[configuration](), chart.Definitions.WebhookConfig, identity)
}
