package hooks

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/pipeguard/pipeguard/internal/entries"
)

// lacking returns the rules of the entries that have others or none, by their place, as far as wanted says so.
func lacking(c *admissionregistrationv1.ValidatingWebhookConfiguration, wanted func(entry string) bool) map[int]entries.Rules {
	out := map[int]entries.Rules{}
	for i, e := range c.Webhooks {
		if want, ok := entries.RulesOf(e.Name); ok && wanted(e.Name) && !apiequality.Semantic.DeepEqual(e.Rules, want) {
			out[i] = want
		}
	}
	return out
}

// isBegun reports whether the API server was told to ask about more than what comes first.
func isBegun(c *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	for _, e := range c.Webhooks {
		if len(e.Rules) > 0 && !entries.IsFirst(e.Name) {
			return true
		}
	}
	return false
}

// isComplete reports whether each entry is known and has its rules.
func isComplete(c *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	for _, e := range c.Webhooks {
		if _, ok := entries.RulesOf(e.Name); !ok {
			return false
		}
	}
	return len(c.Webhooks) > 0 && len(lacking(c, func(string) bool { return true })) == 0
}
