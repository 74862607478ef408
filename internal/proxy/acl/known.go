package acl

import (
	"fmt"
	"slices"
	"strings"
)

// API is one pipe that could be served, with its operations under their newest names.
type API struct {
	Group, Version string
	Operations     []string
}

// Check compares the policy with the APIs that exist. A pattern that covers none of them, and an operation that none of
// the covered ones has, is a fault: a rule with a typing error must not pass for one that allows less than was meant.
func (p *Policy) Check(known []API) error {
	var faults Faults
	for i, m := range p.modes {
		if !slices.ContainsFunc(known, func(a API) bool { return m.pipe.covers(a.Group, a.Version) }) {
			faults.add(fmt.Sprintf("pipes[%d].pipe", i), "pipe %q covers no API; there are %s", p.spec.Modes[i].Pipe, names(known))
		}
	}
	for i, r := range p.rules {
		var operations []string
		for j, pipe := range r.pipes {
			covered := false
			for _, a := range known {
				if pipe.covers(a.Group, a.Version) {
					covered = true
					operations = append(operations, a.Operations...)
				}
			}
			if !covered {
				faults.add(fmt.Sprintf("rules[%d].pipes[%d]", i, j), "pipe %q covers no API; there are %s", p.spec.Rules[i].Pipes[j], names(known))
			}
		}
		slices.Sort(operations)
		operations = slices.Compact(operations)
		for j, name := range p.spec.Rules[i].Operations {
			if name != "*" && len(operations) > 0 && !slices.Contains(operations, name) {
				faults.add(fmt.Sprintf("rules[%d].operations[%d]", i, j), "no pipe of this rule has an operation %q under its newest name; there are %s", name, strings.Join(operations, ", "))
			}
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

func names(known []API) string {
	var list []string
	for _, a := range known {
		list = append(list, a.Group+"-"+a.Version)
	}
	return strings.Join(list, ", ")
}
