package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pipeguard/pipeguard/internal/admission"
)

// gathered are the samples of a registry as Prometheus reads them.
func gathered(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			fmt.Fprintf(&out, "%s{%s} %v\n", f.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue()+m.GetCounter().GetValue())
		}
	}
	return out.String()
}

// Each kind that is judged is asked about by one entry of each sort.
func TestTheRulesAreThoseOfTheJudgedKinds(t *testing.T) {
	var got, want []string
	for entry := range admission.Entries() {
		for _, prefix := range []string{"", PathPrefix, ProcessPrefix} {
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
		for _, prefix := range []string{"", PathPrefix, ProcessPrefix} {
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

func TestTheAnswerToTheCanaryIsUnderstood(t *testing.T) {
	resource := metav1.GroupResource{Resource: "podtemplates"}
	for name, c := range map[string]struct {
		err  error
		want answer
	}{
		"refused by a rule":                       {refusal(), answerRefused},
		"refused, and wrapped":                    {fmt.Errorf("create: %w", refusal()), answerRefused},
		"refused without a verdict":               {denial(`admission webhook "podtemplates.pipeguard.dev" denied the request: PG999: Pipeguard refuses what it cannot judge (overload): x.`), answerOther},
		"by another webhook":                      {denial(`admission webhook "policy.example.com" denied the request: Pipeguard refuses PodTemplate`), answerOther},
		"by another entry":                        {denial(`admission webhook "host-podtemplates.pipeguard.dev" denied the request: Pipeguard refuses PodTemplate`), answerOther},
		"quoted by another":                       {denial(`admission webhook "x" denied the request: admission webhook "podtemplates.pipeguard.dev" denied the request: Pipeguard refuses `), answerOther},
		"by an admission policy":                  {denial(`podtemplates "pipeguard-canary" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'x' denied request: no`), answerOther},
		"by the floor, from which it is left out": {denial(`podtemplates "pipeguard-canary" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'x' denied request: Pipeguard's floor refuses it. PG003`), answerOther},
		"the floor, by another":                   {denial(`admission webhook "x" denied the request: ValidatingAdmissionPolicy 'x' with binding 'x' denied request: Pipeguard's floor refuses it. `), answerOther},
		"admitted":                                {nil, answerAdmitted},
		"no replica":                              {unreachable(), answerUnreachable},
		"another webhook is away":                 {apierrors.NewInternalError(errors.New(`failed calling webhook "x": no endpoints available`)), answerNone},
		"no right":                                {denial(`podtemplates is forbidden: User "u" cannot create resource "podtemplates" in API group "" in the namespace "kube-system"`), answerNone},
		"no namespace":                            {apierrors.NewNotFound(schema.GroupResource(resource), "kube-system"), answerNone},
		"too many requests":                       {apierrors.NewTooManyRequests("later", 1), answerNone},
		"no API server":                           {errors.New("connection refused"), answerNone},
		"an unknown fault":                        {&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadGateway}}, answerNone},
	} {
		if got := answerOf(c.err); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Only what the chart does not decide leaves the digest as it is.
func TestTheDigestIsOfWhatTheChartDecides(t *testing.T) {
	digest := func(change func(e *admissionregistrationv1.ValidatingWebhook)) string {
		c := made(t, objectsName, "pods", "workloads")
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
		"name":           func(e *admissionregistrationv1.ValidatingWebhook) { e.Name = "x" },
	} {
		if digest(change) == was {
			t.Errorf("%s: the same digest", name)
		}
	}
}

func TestThePatchReplacesTheRulesOfSomePlacesInOneVersion(t *testing.T) {
	rules, _ := RulesOf("persistentvolumes.pipeguard.dev")
	text, err := rulesPatch("42", map[int]Rules{3: rules, 1: rules})
	if err != nil {
		t.Fatal(err)
	}
	const rule = `[{"operations":["CREATE","UPDATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["persistentvolumes"],"scope":"Cluster"}]`
	want := `[{"op":"replace","path":"/metadata/resourceVersion","value":"42"},{"op":"add","path":"/webhooks/1/rules","value":` + rule +
		`},{"op":"add","path":"/webhooks/3/rules","value":` + rule + `}]`
	if got := string(text); got != want || !json.Valid(text) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
