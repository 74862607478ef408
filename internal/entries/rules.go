package entries

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/admission"
)

// Names of entries, as the chart makes them: a prefix, the entry of package admission, and the suffix.
const (
	// Suffix ends them all.
	Suffix = ".pipeguard.dev"
	// PathPrefix begins the entries about objects that could reach no pipe, but another path of the host.
	PathPrefix = "host-"
	// ProcessPrefix begins those about objects that could reach no pipe, but be HostProcess containers.
	ProcessPrefix = "hostprocess-"
	// Policies is the entry about policy objects.
	Policies = "policies" + Suffix
	// Pods is the entry about pods that could reach a pipe.
	Pods = "pods" + Suffix
	// Workloads is the entry about templates of pods in workloads that could reach a pipe.
	Workloads = "workloads" + Suffix
	// Canary is the entry that is asked about the canary.
	Canary = first + Suffix

	// first is the entry of package admission that gets its rules first.
	first = "podtemplates"
)

// Rules are those of one entry.
type Rules = []admissionregistrationv1.RuleWithOperations

// Prefixes are those of entries about objects, that of entries about pipes, which is empty, first.
func Prefixes() []string { return []string{"", PathPrefix, ProcessPrefix} }

// PrefixOf returns the one of Prefixes with which a name begins.
func PrefixOf(name string) string {
	for _, prefix := range Prefixes()[1:] {
		if strings.HasPrefix(name, prefix) {
			return prefix
		}
	}
	return ""
}

// WithPrefix returns the names of the entries about objects that have one of Prefixes, sorted.
func WithPrefix(prefix string) (out []string) {
	for entry := range admission.Entries() {
		if name := prefix + entry + Suffix; isKnown(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func isKnown(name string) bool {
	_, ok := RulesOf(name)
	return ok
}

// RulesOf returns the rules of an entry by its name; false means that this release knows no such entry.
func RulesOf(name string) (Rules, bool) {
	if name == Policies {
		return Rules{rule("pipeguard.dev", "*", admissionregistrationv1.ClusterScope, "pipepolicies", "policymodules")}, true
	}
	prefix := PrefixOf(name)
	entry, isOurs := strings.CutSuffix(strings.TrimPrefix(name, prefix), Suffix)
	resources, ok := admission.Entries()[entry]
	if isProcess := prefix == ProcessPrefix; !ok || !isOurs || isProcess && !resources[0].Namespaced { // what holds no pods has no containers
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

// IsFirst says of an entry that it gets its rules before the others.
func IsFirst(name string) bool {
	return strings.TrimPrefix(name, PrefixOf(name)) == first+Suffix
}
