package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/request"
)

// guardedOperations are those that the built-in request policy refuses to whoever is not named.
var guardedOperations = []struct{ group, operation string }{
	{"disk", "PartitionDisk"}, {"disk", "SetDiskState"}, {"system", "StartService"}, {"system", "StopService"}, {"volume", "FormatVolume"},
}

// namedLines are the callers whom the request policy knows by name, one a line, in order. Rules name their callers for
// everything that they spell out: only what the built-in policy asks for is shown of that, and all that was written for it.
func namedLines(parameters, written map[string]any) (lines []string) {
	for group, operations := range sorted(at(parameters, "pipeguard", "parameters", "node", "named")) {
		for operation, callers := range sorted(operations) {
			if !isGuarded(group, operation) && at(written, group, operation) == nil {
				continue
			}
			for namespace, accounts := range sorted(at(callers, "pods")) {
				for account, entries := range sorted(accounts) {
					lines = append(lines, namedEntries(group+"."+operation, "serviceAccount="+namespace+"/"+account, entries)...)
				}
			}
			for user, entries := range sorted(at(callers, "hosts")) {
				lines = append(lines, namedEntries(group+"."+operation, "user="+user, entries)...)
			}
		}
	}
	return slices.Compact(lines)
}

func isGuarded(group, operation string) bool {
	for _, g := range guardedOperations {
		if g.group == group && g.operation == operation {
			return true
		}
	}
	return false
}

func namedEntries(operation, who string, entries any) (lines []string) {
	list, _ := entries.([]any)
	for _, e := range list {
		line := operation + " " + who
		for key, values := range sorted(e) {
			line += fmt.Sprintf(" %s=%v", key, values)
		}
		lines = append(lines, line)
	}
	return lines
}

// notesOf are what a reader of the rules might not expect: they allow what is then not known or not named.
func notesOf(settings config.Proxy, spec acl.Spec, parameters map[string]any) (notes []string) {
	named := at(parameters, "pipeguard", "parameters", "node", "named")
	var ofPods []string
	for _, r := range spec.Rules {
		if slices.ContainsFunc(r.Callers, needsPod) {
			ofPods = append(ofPods, r.Name)
		}
		for _, g := range guardedOperations {
			if !allows(r, g.group, g.operation) {
				continue
			}
			for _, c := range r.Callers {
				if !isNamed(named, g.group, g.operation, c) {
					notes = append(notes, fmt.Sprintf("rule %s allows %s to %s, and the request policy refuses it: nobody is named by that", r.Name, g.operation, c))
				}
			}
		}
	}
	if settings.Containers.Endpoint == "" && len(ofPods) > 0 {
		notes = append(notes, "pods are not known without containers.endpoint, so callers that name one are denied; they are in "+join(ofPods))
	}
	if settings.Bundle.IsSet() {
		notes = append(notes, "pipes that the bundle's PipePolicies guard are decided by the bundle alone; without a valid bundle every call is denied")
	}
	return notes
}

func needsPod(c acl.CallerPattern) bool {
	return c.Namespace != "" || c.ServiceAccount != "" || c.Container != "" || c.Image != "" || c.HostProcess != nil
}

// allows says whether a rule covers an operation of the node API, by * or by its name.
func allows(r acl.Rule, group, operation string) bool {
	if !slices.Contains(r.Operations, "*") && !slices.Contains(r.Operations, operation) {
		return false
	}
	return slices.ContainsFunc(r.Pipes, func(pattern string) bool {
		return strings.HasPrefix(pattern, group+"-") || strings.HasPrefix(pattern, "*") && group != "system"
	})
}

// isNamed says whether parameters name a caller that a rule covers, whatever narrows either of them.
func isNamed(named any, group, operation string, c acl.CallerPattern) bool {
	only := request.NamedBy(acl.Spec{Rules: []acl.Rule{{Pipes: []string{group + "-v1"}, Operations: []string{operation}, Callers: []acl.CallerPattern{c}}}})
	for kind, names := range sorted(at(only, group, operation)) {
		for name, below := range sorted(names) {
			if kind == "hosts" {
				return at(named, group, operation, kind, name) != nil
			}
			for account := range sorted(below) {
				return at(named, group, operation, kind, name, account) != nil
			}
		}
	}
	return false
}

// at walks down a tree of mappings; nil is what is not there.
func at(v any, path ...string) any {
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

// sorted yields what a mapping holds by its keys; nothing if it is none.
func sorted(v any) func(func(string, any) bool) {
	m, _ := v.(map[string]any)
	return func(yield func(string, any) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
