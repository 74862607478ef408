package hooks

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/admission"
)

// Names of entries, as the chart makes them: a prefix, the entry of package admission, and the domain.
const (
	// PathPrefix begins the entries about objects that could reach no pipe, but another path of the host.
	PathPrefix = "host-"
	// ProcessPrefix begins those about objects that could reach no pipe, but be HostProcess containers.
	ProcessPrefix = "hostprocess-"

	domain        = ".pipeguard.dev"
	policiesEntry = "policies"
	// firstEntry is the entry of package admission that gets its rules first.
	firstEntry = "podtemplates"
)

// Rules are those of one entry.
type Rules = []admissionregistrationv1.RuleWithOperations

// RulesOf returns the rules of an entry by its name; false means that this release knows no such entry.
func RulesOf(name string) (Rules, bool) {
	entry, ok := strings.CutSuffix(name, domain)
	if !ok {
		return nil, false
	}
	if entry == policiesEntry {
		return Rules{rule("pipeguard.dev", "*", admissionregistrationv1.ClusterScope, "pipepolicies", "policymodules")}, true
	}
	entry, isProcess := strings.CutPrefix(entry, ProcessPrefix)
	if !isProcess {
		entry = strings.TrimPrefix(entry, PathPrefix)
	}
	resources, ok := admission.Entries()[entry]
	if !ok || isProcess && !resources[0].Namespaced { // what holds no pods has no containers
		return nil, false
	}
	return rulesFor(resources), true
}

// rulesFor makes one rule for each group.
func rulesFor(resources []metav1.APIResource) (out Rules) {
	for _, r := range resources {
		scope := admissionregistrationv1.NamespacedScope
		if !r.Namespaced {
			scope = admissionregistrationv1.ClusterScope
		}
		i := slices.IndexFunc(out, func(known admissionregistrationv1.RuleWithOperations) bool {
			return known.APIGroups[0] == r.Group && known.APIVersions[0] == r.Version && *known.Scope == scope
		})
		if i < 0 {
			out = append(out, rule(r.Group, r.Version, scope, r.Name))
		} else {
			out[i].Resources = append(out[i].Resources, r.Name)
		}
	}
	return out
}

func rule(group, version string, scope admissionregistrationv1.ScopeType, resources ...string) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources, Scope: &scope},
	}
}

// isFirst says of an entry that it gets its rules first.
func isFirst(name string) bool {
	entry, _ := strings.CutSuffix(name, domain)
	return entry == firstEntry || entry == PathPrefix+firstEntry || entry == ProcessPrefix+firstEntry
}
