package acl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

// Check compares the policy with the APIs that exist. A pattern that covers none of them, and an operation that none of
// the covered ones has, is a fault: a rule with a typing error must not pass for one that allows less than was meant.
func (p *Policy) Check(known []access.API) error {
	var faults Faults
	for i, m := range p.modes {
		if !slices.ContainsFunc(known, func(a access.API) bool { return m.Covers(a.Group, a.Version) }) {
			faults.add(fmt.Sprintf("pipes[%d].pipe", i), "pipe %q covers no API; there are %s", p.spec.Modes[i].Pipe, names(known))
		}
	}
	for i, r := range p.rules {
		var operations []string
		all := true
		for j, pipe := range r.Pipes {
			covered := false
			for _, a := range known {
				if pipe.Covers(a.Group, a.Version) {
					covered = true
					operations = append(operations, a.Operations...)
				}
			}
			if !covered {
				all = false
				faults.add(fmt.Sprintf("rules[%d].pipes[%d]", i, j), "pipe %q covers no API; there are %s", p.spec.Rules[i].Pipes[j], names(known))
			}
		}
		slices.Sort(operations)
		operations = slices.Compact(operations)
		for j, name := range p.spec.Rules[i].Operations {
			if name != "*" && !access.IsMethod(name) && all && !slices.Contains(operations, name) {
				faults.add(fmt.Sprintf("rules[%d].operations[%d]", i, j), "no pipe of this rule has an operation %q under its newest name; there are %s", name, strings.Join(operations, ", "))
			}
			if op := knownAs(name, known); op != "" && !slices.ContainsFunc(r.Pipes, func(p access.PipePattern) bool { return access.IsFullName(p.Group) }) {
				faults.add(fmt.Sprintf("rules[%d].operations[%d]", i, j), "method %s is known here, and judged as operation %s on all pipes: name that", name, op)
			}
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// knownAs returns the operation that a method of the node API is judged as; empty if the method's name is not one of those.
func knownAs(method string, known []access.API) string {
	service, name, ok := access.CutMethod(method)
	for _, a := range known {
		if ok && strings.EqualFold(service, a.Version+"."+a.Group) && slices.Contains(a.Operations, name) {
			return name
		}
	}
	return ""
}

func names(known []access.API) string {
	var list []string
	for _, a := range known {
		if access.IsFullName(a.Group) {
			list = append(list, a.Group)
			continue
		}
		list = append(list, a.Group+"-"+a.Version)
	}
	return strings.Join(list, ", ")
}
