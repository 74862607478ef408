package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// SchemaOf is the form that a Document in JSON says it has; empty if it says none.
func SchemaOf(text []byte) string {
	var form struct{ Schema string }
	if json.Unmarshal(text, &form) != nil {
		return ""
	}
	return form.Schema
}

// Document is the access list of a bundle, in JSON. Without policies it permits nothing.
type Document struct {
	Schema   string   `json:"schema"`
	Policies []Policy `json:"policies"`
}

// MaxPolicies bounds the policies. It holds where a document is made and where it is read.
const MaxPolicies = 10_000

// ParseDocument reads a Document. It trusts the signature around it no further than that: unknown words are errors, and so is whatever is read in another way than
// it is written.
func ParseDocument(text []byte) (Document, error) {
	if s := SchemaOf(text); s != "" && !slices.Contains(Schemas(), s) { // its words would be called unknown
		return Document{}, errSchema(s)
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return Document{}, fmt.Errorf("access list: %w", err)
	}
	out, list := Document{Policies: []Policy{}}, []json.RawMessage(nil)
	if err := errors.Join(json.Unmarshal(whole["schema"], &out.Schema), json.Unmarshal(whole["policies"], &list)); err != nil || len(whole) != 2 || list == nil {
		return Document{}, errors.New("access list: want schema and policies, and nothing else: if a later release made it, upgrade this program to that release")
	}
	if len(list) > MaxPolicies {
		return Document{}, errTooMany(len(list))
	}
	for i, raw := range list {
		p, err := readPolicy(raw)
		if err != nil {
			return Document{}, fmt.Errorf("access list: policies[%d]: %w", i, err)
		}
		out.Policies = append(out.Policies, p)
	}
	return out, out.Check()
}

// readPolicy reads one policy. Keys in another case, and values that mean as much as none, would be read as what is not written there.
func readPolicy(raw []byte) (p Policy, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		if strings.HasPrefix(err.Error(), "json: unknown field ") { // the decoder has no type for it
			err = fmt.Errorf("%w: if a later release made it, upgrade this program to that release", err)
		}
		return p, err
	}
	again, err := json.Marshal(p)
	if err != nil {
		return p, err
	}
	var written, read any
	if err := errors.Join(json.Unmarshal(raw, &written), json.Unmarshal(again, &read)); err != nil || !reflect.DeepEqual(written, read) {
		return p, errors.New("it is written in another way than it is read: a key in another case, or a value that means as much as none, such as null, an empty list or the year 1")
	}
	return p, nil
}

func errTooMany(n int) error {
	return fmt.Errorf("access list: %d policies, and at most %d are taken", n, MaxPolicies)
}

func errSchema(is string) error {
	return fmt.Errorf("access list: %w", SchemaFault(is, Schemas()))
}

// Check reports every fault at once.
func (d Document) Check() error {
	var faults []error
	add := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("access list: "+format, args...))
	}
	if !slices.Contains(Schemas(), d.Schema) {
		faults = append(faults, errSchema(d.Schema))
	}
	if len(d.Policies) > MaxPolicies {
		faults = append(faults, errTooMany(len(d.Policies)))
	}
	names := map[string]bool{}
	for _, p := range d.Policies {
		if p.Name == "" || names[p.Name] {
			add("policy %q: the name is empty or another's", p.Name)
		}
		names[p.Name] = true
		if len(p.Pipes) == 0 {
			add("policy %q: no pipes", p.Name)
		}
		for _, pattern := range p.Pipes {
			if _, err := pipepath.NewGuard(pattern); err != nil { // it would guard nothing
				add("policy %q: %w", p.Name, err)
			} else if pipepath.Fold(pattern) != pattern {
				add("policy %q: pipe %q: want a name in lower case, or its beginning and *", p.Name, pattern)
			}
		}
		subjects := map[string]bool{}
		for i := range p.Subjects {
			s := &p.Subjects[i]
			if !caller.IsLabel(s.Name) || subjects[s.Name] { // records name POLICY/SUBJECT
				add("policy %q: subject %q: want a name of lower-case letters, digits and - that no other subject has", p.Name, s.Name)
			}
			subjects[s.Name] = true
			for _, list := range [][]string{s.ServiceAccounts, s.Containers, s.Images, s.Methods, s.PathPrefixes} {
				if slices.Contains(list, "") { // where nothing is asked for, anything fits
					add("policy %q: subject %q: an entry of a list is empty", p.Name, s.Name)
				}
			}
			if err := s.CheckProcess(); err != nil {
				add("policy %q: subject %q: %w", p.Name, s.Name, err)
			}
			if s.ReachesHost() {
				add("policy %q: subject %q: admission alone asks for hostProcess and hostPaths", p.Name, s.Name)
			}
			if s.Namespace == "" && !s.IsProcess() {
				add("policy %q: subject %q: no namespace: it would be everybody", p.Name, s.Name)
			}
			s.Check(func(field, format string, args ...any) {
				add("policy %q: subject %q: %s: %s", p.Name, s.Name, field, fmt.Sprintf(format, args...))
			})
		}
	}
	return errors.Join(faults...)
}
