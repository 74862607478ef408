package main

import (
	"fmt"
	"slices"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// guardedOperations are those that the built-in request policy refuses to callers that are not named.
var guardedOperations = []struct{ group, operation string }{
	{"disk", "PartitionDisk"}, {"disk", "SetDiskState"}, {"system", "StartService"}, {"system", "StopService"}, {"volume", "FormatVolume"},
}

// namedCallers lists the callers that may do what the built-in request policy refuses to all others, one caller of a rule a line; and, for
// notes, the callers that rules allow it without naming them, and what naming by account and program depends on.
func namedCallers(policy *acl.Policy, c config.Containers) (lines, notes []string) {
	isOfNode := false
	for _, g := range guardedOperations {
		named, unnamed := policy.Naming(g.group, g.operation)
		for _, c := range named {
			lines = append(lines, fmt.Sprintf("%s.%s %s", g.group, g.operation, c.Caller))
			isOfNode = isOfNode || !needsPod(c.Caller)
		}
		for _, c := range unnamed {
			notes = append(notes, fmt.Sprintf("rule %s allows %s to %s, and the request policy refuses it: the rule does not name the caller for it", c.Rule, g.operation, c.Caller))
		}
	}
	switch {
	case isOfNode && c.Endpoint == "":
		notes = append(notes, "containers are not known without containers.endpoint, so a caller that is named by account and program is named in a container, too")
	case isOfNode:
		notes = append(notes, "a process is named by account and program only while it is known to be in no container: while the runtime does not answer, new processes are not")
	}
	slices.Sort(lines)
	return slices.Compact(lines), notes
}

// notesOf are what a reader of the rules might not expect of pipes and callers.
func notesOf(settings config.Proxy, spec acl.Spec) (notes []string) {
	if len(spec.Rules) == 0 {
		notes = append(notes, "there is no rule and no profile, so the access list denies every call")
	}
	var ofPods []string
	for _, r := range spec.Rules {
		if slices.ContainsFunc(r.Callers, needsPod) {
			ofPods = append(ofPods, r.Name)
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
