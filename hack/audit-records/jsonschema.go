package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// ID is the address by which the schema is known.
var ID = fmt.Sprintf("https://pipeguard.dev/schemas/audit-record/v%d", audit.Version)

// JSON returns the JSON Schema (draft 2020-12) of a record.
func (o *Object) JSON() ([]byte, error) {
	root := members{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", ID},
		{"$comment", "Made from " + Source + ". A line has at most " + fmt.Sprint(audit.MaxRecord) + " bytes with its newline."},
		{"title", fmt.Sprintf("Audit record of Pipeguard, v%d", audit.Version)},
	}
	root = append(root, o.members()...)
	root = append(root, member{"allOf", o.stages()})
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("encode the schema of records: %w", err)
	}
	return out.Bytes(), nil
}

func (o *Object) members() members {
	var required []string
	var properties members
	for _, f := range o.Fields {
		if !f.Optional {
			required = append(required, f.Name)
		}
		properties = append(properties, member{f.Name, f.members()})
	}
	out := members{{"description", o.Meaning}, {"type", "object"}, {"additionalProperties", false}}
	if len(required) > 0 {
		out = append(out, member{"required", required})
	}
	return append(out, member{"properties", properties})
}

func (f *Field) members() members {
	if f.Name == "v" {
		return members{{"description", f.Meaning}, {"const", audit.Version}}
	}
	out := members{{"description", f.Meaning}}
	if !f.IsList {
		return append(out, f.value(f.Optional)...)
	}
	out = append(out, member{"type", "array"}, member{"minItems", max(f.Min, 1)}, member{"items", f.value(false)})
	return out
}

// value is what a field may be, or the entries of a list. What is left out when it is empty is not empty when it is there.
func (f *Field) value(present bool) members {
	least := f.Min
	if present {
		least = max(least, 1)
	}
	switch f.Kind {
	case Nested:
		return f.Object.members()[1:]
	case Any:
		return members{{"type", []string{"object", "string"}}}
	case Claim:
		return members{{"const", true}}
	case Integer:
		return members{{"type", "integer"}}
	case Count:
		most := uint64(math.MaxUint64)
		if f.Max > 0 {
			most = f.Max
		}
		return members{{"type", "integer"}, {"minimum", least}, {"maximum", most}}
	case Time:
		return members{{"type", "string"}, {"format", "date-time"}, {"pattern", "Z$"}}
	}
	out := members{{"type", "string"}}
	switch {
	case f.Values != nil:
		out = append(out, member{"enum", texts(f.Values)})
	case f.Form != "":
		pattern := forms[f.Form].pattern
		if f.IsList {
			pattern = "(" + pattern + "|" + cut + ")"
		}
		out = append(out, member{"pattern", "^" + pattern + "$"})
	case least > 0 && !f.IsList:
		out = append(out, member{"minLength", least})
	}
	if f.Max > 0 {
		out = append(out, member{"maxLength", f.Max})
	}
	return out
}

// stages says which stages go with which type.
func (o *Object) stages() []members {
	var out []members
	for _, kind := range o.field("type").Values {
		var stages []string
		for _, stage := range o.field("stage").Values {
			if slices.Contains(stage.Of, kind.Text) {
				stages = append(stages, stage.Text)
			}
		}
		is := func(field string, value member) members {
			return members{{"properties", members{{field, members{value}}}}}
		}
		out = append(out, members{{"if", is("type", member{"const", kind.Text})}, {"then", is("stage", member{"enum", stages})}})
	}
	return out
}

func (o *Object) field(name string) *Field {
	for i := range o.Fields {
		if o.Fields[i].Name == name {
			return &o.Fields[i]
		}
	}
	return &Field{}
}

func texts(values []Value) []string {
	var out []string
	for _, v := range values {
		out = append(out, v.Text)
	}
	return out
}

// members are an object of JSON in this order.
type members []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (m members) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, f := range m {
		if i > 0 {
			out = append(out, ',')
		}
		value, err := plain(f.value)
		if err != nil {
			return nil, err
		}
		out = append(fmt.Appendf(out, "%q:", f.name), value...)
	}
	return append(out, '}'), nil
}

// plain is json.Marshal without the escapes that are for HTML.
func plain(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSpace(out.Bytes()), err
}
