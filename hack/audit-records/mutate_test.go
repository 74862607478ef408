package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// wrong are values that a field of a kind never has.
func (f *Field) wrong() map[string]any {
	out := map[string]any{"null": nil, "an object in a list": []any{map[string]any{"x": "y"}}, "a fraction": json.Number("1.5"), "false": false}
	if f.Kind != Claim || f.IsList {
		out["true"] = true
	}
	if f.Kind != Any && (f.Kind != Nested || f.IsList) {
		out["an object"] = map[string]any{}
	}
	if f.Kind != Text && f.Kind != Any || f.IsList {
		out["a text"] = "7"
	}
	if f.Kind != Integer && f.Kind != Count || f.IsList {
		out["a number"] = json.Number("7")
	}
	if f.Kind == Count && !f.IsList {
		out["a negative number"], out["too much"] = json.Number("-1"), json.Number("18446744073709551616")
	}
	if f.Optional && f.IsList {
		out["an empty list"] = []any{}
	}
	if f.Optional && f.Kind == Text {
		out["an empty text"] = ""
	}
	if f.Optional && f.Kind == Count {
		out["nothing"] = json.Number("0")
	}
	if f.Values != nil {
		out["an unknown word"] = "Unheard"
		out["another spelling"] = string(f.Values[0].Text[0]^0x20) + f.Values[0].Text[1:]
	}
	if f.Kind == Time {
		out["a time without a zone"], out["local time"], out["a date"] = "2026-03-01T12:00:00", "2026-03-01T12:00:00+01:00", "2026-03-01"
	}
	if f.Name == "v" {
		out["another version"] = json.Number("2")
	}
	return out
}

// mutate calls check with each thing that is wrong about a document while it is.
func mutate(o *Object, doc map[string]any, check func(what string)) {
	doc["x"] = "y"
	check(o.Path + " has an unknown field")
	delete(doc, "x")
	for i := range o.Fields {
		f := &o.Fields[i]
		place := o.Path + "." + f.Name
		before, present := doc[f.Name]
		if !present {
			continue
		}
		if !f.Optional {
			delete(doc, f.Name)
			check(place + " is missing")
		}
		for what, value := range f.wrong() {
			doc[f.Name] = value
			check(fmt.Sprintf("%s is %s", place, what))
			if f.IsList && !strings.HasPrefix(what, "an empty") {
				doc[f.Name] = []any{value}
				if _, isText := value.(string); !isText || f.Kind != Text || f.Form != "" {
					check(fmt.Sprintf("%s is a list of %s", place, what))
				}
			}
		}
		doc[f.Name] = before
		if f.Object == nil {
			continue
		}
		entries, isList := before.([]any)
		if !isList {
			entries = []any{before}
		}
		for _, entry := range entries[:1] {
			if inner, ok := entry.(map[string]any); ok {
				mutate(f.Object, inner, check)
			}
		}
	}
}

func TestWhatIsNoRecordIsNotValid(t *testing.T) {
	schema, record, count := compiled(t), read(t), 0
	lines(t, fmt.Sprintf("../../internal/audit/testdata/v%d/*.jsonl", audit.Version), 30, func(name string, line []byte) {
		doc := decode(t, line)
		mutate(record, doc, func(what string) {
			count++
			if err := schema.Validate(doc); err == nil {
				t.Errorf("%s: valid, though %s: %v", name, what, doc)
			}
		})
		for kind := range stagesOf {
			for other, stages := range stagesOf {
				for _, stage := range stages {
					if other == kind || slices.Contains(stagesOf[kind], stage) {
						continue
					}
					before, was := doc["type"], doc["stage"]
					doc["type"], doc["stage"] = string(kind), string(stage)
					if err := schema.Validate(doc); err == nil {
						t.Errorf("%s of type %s is valid", stage, kind)
					}
					doc["type"], doc["stage"] = before, was
				}
			}
		}
		if err := schema.Validate(doc); err != nil {
			t.Fatalf("the record is not what it was: %v", err)
		}
	})
	if count < 5000 {
		t.Errorf("only %d spoiled records", count)
	}
}
