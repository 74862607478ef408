package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Place says where in the input something stands. The fields of its JSON form are promised to users.
type Place struct {
	File     string `json:"file"`           // as the caller named it
	Document int    `json:"document"`       // from 1, documents without content not counted
	Line     int    `json:"line"`           // of the document's first line in the file, from 1
	Item     string `json:"item,omitempty"` // within a List: "items[0]"; otherwise empty
}

// String writes the place as file, document and item.
func (p Place) String() string {
	s := fmt.Sprintf("%s: document %d (line %d)", p.File, p.Document, p.Line)
	if p.Item != "" {
		s += " " + p.Item
	}
	return s
}

// Object is one object with the fields that say what it is.
type Object struct {
	Place
	APIVersion string
	Kind       string
	Namespace  string // metadata.namespace; empty if absent
	Name       string // metadata.name, or metadata.generateName with an asterisk
	JSON       []byte
	YAML       []byte // the document that it stands in; nil if the file is JSON
}

// Fault is input that could not be understood.
type Fault struct {
	Place
	Err error
}

// Error names the place and the reason.
func (f Fault) Error() string { return f.String() + ": " + f.Err.Error() }

// Unwrap returns the reason.
func (f Fault) Unwrap() error { return f.Err }

// maxListDepth bounds Lists in Lists: kubectl makes at most one level, and each costs a copy of its content.
const maxListDepth = 4

// objectsOf turns one document into its objects: itself, or the items of a List.
func (b bounds) objectsOf(place Place, doc []byte, depth int) ([]Object, []Fault) {
	fault := func(err error) ([]Object, []Fault) { return nil, []Fault{{place, err}} }
	fields, err := fieldsOf(doc)
	if err != nil {
		return fault(err)
	}
	o := Object{Place: place, JSON: doc}
	if o.APIVersion, err = text(fields, "apiVersion"); err != nil {
		return fault(err)
	}
	if o.Kind, err = text(fields, "kind"); err != nil {
		return fault(err)
	}
	if o.APIVersion == "" || o.Kind == "" {
		return fault(errors.New("apiVersion and kind must both be set"))
	}
	if fields["items"] != nil {
		elem, isList := strings.CutSuffix(o.Kind, "List")
		if !isList { // kubectl takes it for a list by this field alone
			return fault(fmt.Errorf("a %s with items beside its kind: kubectl would create the items", o.Kind))
		}
		if depth >= maxListDepth {
			return fault(fmt.Errorf("lists in lists, more than %d deep", maxListDepth))
		}
		return b.items(place, o.APIVersion, elem, fields["items"], depth)
	}
	if fields["metadata"] != nil {
		meta, err := fieldsOf(fields["metadata"])
		if err != nil {
			return fault(fmt.Errorf("metadata: %w", err))
		}
		if err := name(&o, meta); err != nil {
			return fault(fmt.Errorf("metadata: %w", err))
		}
	}
	return []Object{o}, nil
}

func name(o *Object, meta map[string]json.RawMessage) (err error) {
	if o.Namespace, err = text(meta, "namespace"); err != nil {
		return err
	}
	if o.Name, err = text(meta, "name"); err != nil || o.Name != "" {
		return err
	}
	if o.Name, err = text(meta, "generateName"); o.Name != "" {
		o.Name += "*"
	}
	return err
}

// items reads a List. Items of a typed list (PodList) may leave out what the list's own kind says.
func (b bounds) items(place Place, apiVersion, elem string, raw json.RawMessage, depth int) ([]Object, []Fault) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if begin, err := dec.Token(); err != nil || begin != json.Delim('[') {
		return nil, []Fault{{place, errors.New("items must be a list")}}
	}
	var found []Object
	var faults []Fault
	for i := 0; dec.More(); i++ {
		if len(found)+len(faults) >= b.objects {
			return found, append(faults, Fault{place, b.tooMany()})
		}
		var doc json.RawMessage
		if err := dec.Decode(&doc); err != nil {
			return found, append(faults, Fault{place, err})
		}
		at := place
		at.Item = strings.TrimPrefix(fmt.Sprintf("%s.items[%d]", place.Item, i), ".")
		if elem != "" {
			var err error
			if doc, err = typed(doc, apiVersion, elem); err != nil {
				faults = append(faults, Fault{at, err})
				continue
			}
		}
		o, f := b.objectsOf(at, doc, depth+1)
		found, faults = append(found, o...), append(faults, f...)
	}
	return found, faults
}

func typed(doc json.RawMessage, apiVersion, kind string) (json.RawMessage, error) {
	fields, err := fieldsOf(doc)
	if err != nil {
		return nil, err
	}
	if fields["apiVersion"] != nil || fields["kind"] != nil {
		return doc, nil
	}
	fields["apiVersion"], _ = json.Marshal(apiVersion)
	fields["kind"], _ = json.Marshal(kind)
	return json.Marshal(fields)
}

// fieldsOf takes names letter by letter, as the API server does: encoding/json alone would take "Kind" for "kind".
func fieldsOf(doc []byte) (map[string]json.RawMessage, error) {
	trimmed := bytes.TrimLeft(doc, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, errors.New("not an object")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(trimmed, &fields); err != nil {
		return nil, err
	}
	for k, v := range fields {
		if string(v) == "null" {
			delete(fields, k)
		}
	}
	return fields, nil
}

func text(fields map[string]json.RawMessage, key string) (s string, err error) {
	if fields[key] == nil {
		return "", nil
	}
	if err := json.Unmarshal(fields[key], &s); err != nil {
		return "", fmt.Errorf("%s must be a string", key)
	}
	return s, nil
}
