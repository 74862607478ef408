package main

import (
	"bytes"
	_ "embed" // the page around the tables
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/pipeguard/pipeguard/internal/audit"
)

//go:embed page.md
var page string

// Page returns the reference of records for people, in Markdown.
func (o *Object) Page() ([]byte, error) {
	t, err := template.New("page").Funcs(template.FuncMap{"cell": cell}).Parse(page)
	if err != nil {
		return nil, fmt.Errorf("the page of records: %w", err)
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{
		"Version": audit.Version, "MaxRecord": audit.MaxRecord, "ID": ID, "Source": Source,
		"Record": o, "Objects": o.below(), "Types": o.field("type").Values, "Stages": o.field("stage").Values,
	})
	if err != nil {
		return nil, fmt.Errorf("the page of records: %w", err)
	}
	return append(bytes.TrimSpace(out.Bytes()), '\n'), nil
}

// below are the objects that o holds, each before what it holds itself.
func (o *Object) below() (out []*Object) {
	for _, f := range o.Fields {
		if f.Object != nil {
			out = append(append(out, f.Object), f.Object.below()...)
		}
	}
	return out
}

// Explained are the fields whose words need a table of their own.
func (o *Object) Explained() (out []Field) {
	for _, f := range o.Fields {
		if len(f.Values) > 0 && f.Values[0].Meaning != "" && f.Name != "type" && f.Name != "stage" {
			out = append(out, f)
		}
	}
	return out
}

// Type is the type of a field in words.
func (f Field) Type() string {
	text := string(f.Kind)
	switch {
	case f.Form != "":
		text = forms[f.Form].name
	case f.Kind == Nested:
		text = "[object](#" + strings.ReplaceAll(f.Object.Path, ".", "") + ")"
	case f.Kind == Count:
		text = "integer"
	case f.Values != nil:
		text = "one of `" + strings.Join(texts(f.Values), "` `") + "`"
	}
	if f.Name == "v" {
		text = fmt.Sprint(audit.Version)
	}
	if f.IsList {
		return "list: " + text
	}
	return text
}

// Types are the types of records that a stage is of, as words.
func (v Value) Types() string { return strings.Join(slices.Clone(v.Of), ", ") }

// cell makes a text fit into a cell of a table.
func cell(text string) string { return strings.NewReplacer("|", `\|`, "<", `\<`).Replace(text) }
