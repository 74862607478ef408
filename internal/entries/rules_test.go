package entries

import (
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/admission"
)

// Each kind that is judged is asked about by one entry of each sort.
func TestTheRulesAreThoseOfTheJudgedKinds(t *testing.T) {
	var got, want []string
	for entry := range admission.Entries() {
		for _, prefix := range Prefixes() {
			rules, ok := RulesOf(prefix + entry + ".pipeguard.dev")
			if isVolumes := entry == "persistentvolumes"; ok == (isVolumes && prefix == ProcessPrefix) {
				t.Errorf("%s%s: known %t", prefix, entry, ok)
			}
			for _, r := range rules {
				for _, resource := range r.Resources {
					got = append(got, fmt.Sprint(prefix, r.APIGroups, r.APIVersions, resource, *r.Scope, r.Operations))
				}
			}
		}
	}
	for _, r := range append(admission.Resources(), metav1.APIResource{Version: "v1", Name: "pods/ephemeralcontainers", Namespaced: true}) {
		for _, prefix := range Prefixes() {
			scope := "Namespaced"
			if !r.Namespaced {
				if scope = "Cluster"; prefix == ProcessPrefix {
					continue
				}
			}
			want = append(want, fmt.Sprint(prefix, []string{r.Group}, []string{r.Version}, r.Name, scope, []string{"CREATE", "UPDATE"}))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("asked about\n%q\nwant\n%q", got, want)
	}
	for _, name := range []string{"", "pods", "x.pipeguard.dev", "host-hostprocess-pods.pipeguard.dev", "hostprocess-host-pods.pipeguard.dev", "host-policies.pipeguard.dev", "pods.pipeguard.dev.example.com"} {
		if rules, ok := RulesOf(name); ok {
			t.Errorf("%q has the rules %v", name, rules)
		}
	}
}

func entry(name string) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name: name, FailurePolicy: new(admissionregistrationv1.Fail), NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "x", Name: "y"}},
	}
}

// Only what the chart does not decide leaves the digest as it is.
func TestTheDigestIsOfWhatTheChartDecides(t *testing.T) {
	digest := func(change func(e *admissionregistrationv1.ValidatingWebhook)) string {
		c := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{entry(Pods), entry(Workloads)}}
		change(&c.Webhooks[1])
		out, err := Digest(c.Webhooks)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	was := digest(func(*admissionregistrationv1.ValidatingWebhook) {})
	for name, change := range map[string]func(e *admissionregistrationv1.ValidatingWebhook){
		"rules":    func(e *admissionregistrationv1.ValidatingWebhook) { e.Rules, _ = RulesOf(e.Name) },
		"caBundle": func(e *admissionregistrationv1.ValidatingWebhook) { e.ClientConfig.CABundle = []byte("x") },
		"selector": func(e *admissionregistrationv1.ValidatingWebhook) { e.NamespaceSelector = nil },
	} {
		if digest(change) != was {
			t.Errorf("%s: another digest", name)
		}
	}
	for name, change := range map[string]func(e *admissionregistrationv1.ValidatingWebhook){
		"failurePolicy": func(e *admissionregistrationv1.ValidatingWebhook) {
			e.FailurePolicy = new(admissionregistrationv1.Ignore)
		},
		"matchConditions": func(e *admissionregistrationv1.ValidatingWebhook) {
			e.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "never", Expression: "false"}}
		},
		"matchPolicy":    func(e *admissionregistrationv1.ValidatingWebhook) { e.MatchPolicy = new(admissionregistrationv1.Exact) },
		"timeoutSeconds": func(e *admissionregistrationv1.ValidatingWebhook) { e.TimeoutSeconds = new(int32(1)) },
		"path":           func(e *admissionregistrationv1.ValidatingWebhook) { e.ClientConfig.Service.Path = new("/healthz") },
		"name":           func(e *admissionregistrationv1.ValidatingWebhook) { e.Name = "x" },
	} {
		if digest(change) == was {
			t.Errorf("%s: the same digest", name)
		}
	}
}
