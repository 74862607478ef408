package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// summary is what check-config prints of a configuration without faults.
type summary struct {
	settings config.Proxy
	policy   *acl.Policy
	opens    map[string][]string // accounts by pipe
	warnings []string            // beside those of the settings
	notes    []string
}

func join(texts []string) string { return strings.Join(texts, ", ") }

// print writes a block for each rule and a line for everything else, so that each can be found by its first words.
func (s summary) print(out io.Writer) error {
	var text strings.Builder
	add := func(name, value string) {
		if value != "" {
			_ = printLine(&text, "%s %s", name, value) // a builder takes everything
		}
	}
	spec := s.settings.Spec()
	for _, r := range spec.Rules {
		printRule(&text, r)
	}
	add("limits", describeLimits(spec.Limits))
	for _, m := range spec.Modes {
		add("mode "+m.Pipe, string(m.Mode))
	}
	for _, pipe := range slices.Sorted(maps.Keys(s.settings.Tokens.Pipes)) {
		add("tokens "+pipe, string(s.settings.Tokens.Pipes[pipe]))
	}
	for _, pipe := range slices.Sorted(maps.Keys(s.opens)) {
		add("opens "+pipe, join(s.opens[pipe]))
	}
	named, unnamed := namedCallers(s.policy, s.settings.Containers)
	for _, line := range named {
		add("named", line)
	}
	add("callers", describeCallers(s.settings.Containers))
	add("policy", describePolicy(s.settings.RequestPolicy))
	add("bundle", describeBundle(s.settings.Bundle))
	for _, w := range append(s.settings.Warnings(), s.warnings...) {
		add("warning", w)
	}
	for _, note := range slices.Concat(s.notes, unnamed, notesOf(s.settings, spec)) {
		add("note", note)
	}
	add("revision", s.policy.Revision())
	_, err := io.WriteString(out, text.String())
	return err
}

func printRule(text *strings.Builder, r acl.Rule) {
	_ = printLine(text, "rule %s", r.Name)
	line := func(name, value string) {
		if value != "" {
			_ = printLine(text, "  %-10s  %s", name, value)
		}
	}
	line("pipes", join(r.Pipes))
	line("operations", join(r.Operations))
	line("paths", join(r.Paths))
	line("shares", join(r.Shares))
	line("services", join(r.Services))
	line("permits", join(r.Permits))
	line("limits", describeLimits(r.Limits))
	for _, c := range r.Callers {
		line("caller", c.String())
	}
	text.WriteByte('\n')
}

func describeCallers(c config.Containers) string {
	accounts := "service accounts are not known"
	switch {
	case c.Endpoint == "":
		return "are known by their processes: no container runtime is asked"
	case c.Kubelet.URL != "":
		accounts = "service accounts from " + c.Kubelet.URL
	case c.Snapshot != "":
		accounts = "service accounts from " + c.Snapshot
	}
	return "are known by their pods: containers from " + c.Endpoint + ", " + accounts
}

func describePolicy(p config.RequestPolicy) string {
	if p.Modules == "" {
		return "is the built-in request policy"
	}
	return "is the built-in request policy and the modules in " + p.Modules
}

func describeBundle(b config.Bundle) string {
	if !b.IsSet() {
		return ""
	}
	s := fmt.Sprintf("for pool %s from %s, signed by a key in %s, kept in %s", b.Pool, b.File+b.URL, b.Keys, b.Directory())
	if b.MinimumRevision > 0 {
		s += fmt.Sprintf(", revision %d or later", b.MinimumRevision)
	}
	return s
}
