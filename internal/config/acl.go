package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pipeguard/pipeguard/internal/configfile"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/acl/profiles"
)

// Spec returns the access list in the words of package acl, the rules of the profiles last.
func (p Proxy) Spec() acl.Spec {
	spec, _ := p.ACL.spec() // no configuration is returned whose profiles have faults
	return spec
}

// spec also returns the faults of the profiles, whose fields lack the "acl." in front.
func (a ACL) spec() (acl.Spec, configfile.Faults) {
	s := acl.Spec{Modes: a.Pipes, Rules: slices.Clone(a.Rules), Limits: a.Limits}
	var faults configfile.Faults
	for i, p := range a.Profiles {
		rules, err := profiles.Rules(profiles.Options(p))
		if err != nil {
			faults = append(faults, configfile.Fault{Field: fmt.Sprintf("profiles[%d]", i), Problem: err.Error()})
		}
		s.Rules = append(s.Rules, rules...)
	}
	return s, faults
}

// place gives faults of the access list their place in the file: those of a profile's rules are the profile's.
func (a ACL) place(err error) configfile.Faults {
	var faults acl.Faults
	if !errors.As(err, &faults) {
		return configfile.Faults{{Field: "acl.rules", Problem: err.Error()}}
	}
	placed := make(configfile.Faults, len(faults))
	for i, f := range faults {
		placed[i] = configfile.Fault{Field: "acl." + a.fieldOf(f.Field), Problem: f.Problem}
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
