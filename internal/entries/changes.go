package entries

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DigestAnnotation is the annotation of a configuration in which the chart says what it has made: see Digest.
const DigestAnnotation = "pipeguard.dev/entries"

// Parts of a configuration that another hand can have changed.
const (
	PartSelectors = "selectors"
	PartService   = "service"
	PartEntries   = "entries"
)

// Parts are all of them.
func Parts() []string { return []string{PartSelectors, PartService, PartEntries} }

// Service is the Service that entries are to name.
type Service struct{ Namespace, Name string }

// Digest is the hash of what the chart decides about entries: all but the rules and the selectors, which it does not set, and, of the client
// configuration, the path alone. The chart's template pipeguard.entriesDigest computes the same.
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
		if at := e.ClientConfig.Service; at != nil && at.Path != nil {
			all[i]["path"] = *at.Path
		}
	}
	text, err := json.Marshal(all) // with sorted keys
	if err != nil {
		return "", fmt.Errorf("encode entries: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Changed returns the parts of a configuration that are not as the chart made them. Without the annotation, a change of its entries is not seen.
func Changed(c *admissionregistrationv1.ValidatingWebhookConfiguration, s Service) map[string]bool {
	out := map[string]bool{}
	for _, e := range c.Webhooks {
		if selects(e.NamespaceSelector) || selects(e.ObjectSelector) {
			out[PartSelectors] = true
		}
		if at := e.ClientConfig.Service; at == nil || at.Namespace != s.Namespace || at.Name != s.Name {
			out[PartService] = true
		}
	}
	if want, ok := c.Annotations[DigestAnnotation]; ok {
		got, err := Digest(c.Webhooks)
		out[PartEntries] = err != nil || got != want
	}
	return out
}

func selects(s *metav1.LabelSelector) bool {
	return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0
}
