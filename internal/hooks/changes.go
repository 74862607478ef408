package hooks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DigestAnnotation is the annotation of a configuration in which the chart says what it has made: see Digest.
const DigestAnnotation = "pipeguard.dev/entries"

// Parts of a configuration that another hand can have changed.
const (
	partSelectors = "selectors"
	partService   = "service"
	partEntries   = "entries"
)

// parts are all of them.
var parts = []string{partSelectors, partService, partEntries}

// Service is the Service that entries are to name.
type Service struct{ Namespace, Name string }

// Digest is the hash of what the chart decides about entries: all but the rules, the selectors, which it does not set, and the
// client configuration. The chart's template pipeguard.entriesDigest computes the same.
func Digest(entries []admissionregistrationv1.ValidatingWebhook) (string, error) {
	all := make([]map[string]any, len(entries))
	for i, e := range entries {
		e.Rules, e.NamespaceSelector, e.ObjectSelector = nil, nil, nil
		text, err := json.Marshal(e)
		if err != nil {
			return "", fmt.Errorf("encode entry %s: %w", e.Name, err)
		}
		if err := json.Unmarshal(text, &all[i]); err != nil {
			return "", fmt.Errorf("encode entry %s: %w", e.Name, err)
		}
		delete(all[i], "clientConfig")
	}
	text, err := json.Marshal(all) // with sorted keys
	if err != nil {
		return "", fmt.Errorf("encode entries: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// changed returns the parts of a configuration that are not as the chart made them. Without an annotation, nobody says how the
// entries were made.
func changed(c *admissionregistrationv1.ValidatingWebhookConfiguration, s Service) map[string]bool {
	out := map[string]bool{}
	for _, e := range c.Webhooks {
		if selects(e.NamespaceSelector) || selects(e.ObjectSelector) {
			out[partSelectors] = true
		}
		if at := e.ClientConfig.Service; at == nil || at.Namespace != s.Namespace || at.Name != s.Name {
			out[partService] = true
		}
	}
	if want, ok := c.Annotations[DigestAnnotation]; ok {
		got, err := Digest(c.Webhooks)
		out[partEntries] = err != nil || got != want
	}
	return out
}

func selects(s *metav1.LabelSelector) bool {
	return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0
}

// lacking returns the rules of the entries that have others or none, by their place, as far as wanted says so.
func lacking(c *admissionregistrationv1.ValidatingWebhookConfiguration, wanted func(entry string) bool) map[int]Rules {
	out := map[int]Rules{}
	for i, e := range c.Webhooks {
		if want, ok := RulesOf(e.Name); ok && wanted(e.Name) && !apiequality.Semantic.DeepEqual(e.Rules, want) {
			out[i] = want
		}
	}
	return out
}

// hasBegun reports whether the API server was told to ask about more than what comes first.
func hasBegun(c *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	for _, e := range c.Webhooks {
		if len(e.Rules) > 0 && !isFirst(e.Name) {
			return true
		}
	}
	return false
}

// isComplete reports whether each entry is known and has its rules.
func isComplete(c *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	for _, e := range c.Webhooks {
		if _, ok := RulesOf(e.Name); !ok {
			return false
		}
	}
	return len(c.Webhooks) > 0 && len(lacking(c, func(string) bool { return true })) == 0
}
