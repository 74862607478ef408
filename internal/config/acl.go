package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pipeguard/pipeguard/internal/plainyaml"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/acl/profiles"
)

// decode reads one document strictly.
func decode(file string, text []byte, into any) (*yaml.Node, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("configuration %s is longer than %d bytes", file, maxFile)
	}
	if err := plainyaml.Check(text); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", file, err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", file, oneByOne(err))
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	// An empty file decodes as io.EOF; it then lacks its apiVersion like any other foreign file.
	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("configuration %s: %w", file, oneByOne(err))
	}
	if line, err := plainyaml.Second(text); err != nil || line > 0 {
		return nil, fmt.Errorf("configuration %s: more than one document", file)
	}
	return &root, nil
}

// Spec returns the access list in the words of package acl, the rules of the profiles last.
func (p Proxy) Spec() acl.Spec {
	spec, _ := p.ACL.spec() // a configuration whose profiles have faults is not returned to anybody
	return spec
}

// spec also returns the faults of the profiles, whose fields lack the "acl." in front.
func (a ACL) spec() (acl.Spec, acl.Faults) {
	s := acl.Spec{Modes: a.Pipes, Rules: slices.Clone(a.Rules), Limits: a.Limits}
	var faults acl.Faults
	for i, p := range a.Profiles {
		rules, err := profiles.Rules(profiles.Options(p))
		if err != nil {
			faults = append(faults, acl.Fault{Field: fmt.Sprintf("profiles[%d]", i), Problem: err.Error()})
		}
		s.Rules = append(s.Rules, rules...)
	}
	return s, faults
}

// place gives faults of the access list their place in the file: those of a profile's rules are the profile's.
func (a ACL) place(err error) acl.Faults {
	var faults acl.Faults
	if !errors.As(err, &faults) {
		return acl.Faults{{Field: "acl.rules", Problem: err.Error()}}
	}
	placed := make(acl.Faults, len(faults))
	for i, f := range faults {
		placed[i] = acl.Fault{Field: "acl." + a.fieldOf(f.Field), Problem: f.Problem}
	}
	return placed
}

func (a ACL) fieldOf(field string) string {
	var n int
	if _, err := fmt.Sscanf(field, "rules[%d]", &n); err != nil || n < len(a.Rules) {
		return field
	}
	end := len(a.Rules)
	for i, p := range a.Profiles {
		rules, err := profiles.Rules(profiles.Options(p))
		if end += len(rules); err == nil && n < end {
			return fmt.Sprintf("profiles[%d]", i)
		}
	}
	return "profiles"
}

// oneByOne makes a list of the faults of a decoder, which has them as one text: a key that holds a line break would look like several.
func oneByOne(err error) error {
	wrong, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return err
	}
	faults := make([]error, len(wrong.Errors))
	for i, text := range wrong.Errors {
		faults[i] = errors.New(text)
	}
	return errors.Join(faults...)
}
