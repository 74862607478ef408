package clustercmd

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
)

func TestConfigurationsThatDoNotHaveTheAPIServerAsk(t *testing.T) {
	findsFaults(t, map[string]fault{
		"no configuration": {func(f *fakeAPI) { f.lists[atConfigurations] = []any{} }, "objects", "the API server does not ask"},
		"a selector": {func(f *fakeAPI) {
			f.webhook(t, func(w *admissionregistrationv1.ValidatingWebhook) {
				w.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "control-plane", Operator: "DoesNotExist"}}}
			})
		}, "objects", "a namespaceSelector leaves namespaces out: !control-plane"},
		"a selector of objects": {func(f *fakeAPI) {
			f.webhook(t, func(w *admissionregistrationv1.ValidatingWebhook) {
				w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			})
		}, "objects", "an objectSelector leaves objects out: a=b"},
		"an ignored failure": {func(f *fakeAPI) {
			f.webhook(t, func(w *admissionregistrationv1.ValidatingWebhook) {
				w.FailurePolicy = new(admissionregistrationv1.Ignore)
			})
		}, "objects", "failurePolicy Ignore"},
		"a condition": {func(f *fakeAPI) {
			f.webhook(t, func(w *admissionregistrationv1.ValidatingWebhook) { w.MatchConditions[0].Name = "not-mine" })
		}, "objects", `match condition "not-mine" is not of the release`},
		"no authority": {func(f *fakeAPI) {
			f.webhook(t, func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.CABundle = nil })
		}, "objects", "the caBundle is empty"},
		"an address": {func(f *fakeAPI) {
			f.webhook(t, func(w *admissionregistrationv1.ValidatingWebhook) {
				w.ClientConfig.Service, w.ClientConfig.URL = nil, new("https://elsewhere.example")
			})
			f.webhook(t, func(w *admissionregistrationv1.ValidatingWebhook) {})
		}, "objects", "it is not at the service guard/webhook"},
		"a kind that is not sent": {func(f *fakeAPI) {
			f.webhook(t, func(w *admissionregistrationv1.ValidatingWebhook) { w.Rules = w.Rules[1:] })
		}, "objects", "CREATE of pods is not sent"},
		"an operation that is not sent": {func(f *fakeAPI) {
			f.webhook(t, func(w *admissionregistrationv1.ValidatingWebhook) {
				w.Rules[3].Operations = []admissionregistrationv1.OperationType{"CREATE"}
			})
		}, "objects", "UPDATE of deployments.apps is not sent"},
		"another writer": {func(f *fakeAPI) {
			get[configurationOf](t, f, atConfigurations, 0).ManagedFields = []metav1.ManagedFieldsEntry{
				{Manager: "helm", FieldsV1: metav1.NewFieldsV1(`{"f:webhooks":{".":{},"k:{\"name\":\"a\"}":{"f:rules":{}}}}`)},
				{Manager: "kubectl-edit", FieldsV1: metav1.NewFieldsV1(`{"f:webhooks":{"k:{\"name\":\"a\"}":{"f:matchConditions":{}}}}`)},
			}
		}, "objects", "was written by more than one: helm, kubectl-edit"},
		"no policies' webhook": {func(f *fakeAPI) { f.lists[atConfigurations] = f.lists[atConfigurations][:1] }, "changes", "not found"},
	})
}

func TestWebhooksThatMayBeIgnored(t *testing.T) {
	for _, c := range []struct {
		text    string
		isSplit bool
		ignored int // webhook: pipes, host, hostprocess
		want    string
	}{
		{"{hostProcess: Deny}", false, 1, stateNo},
		{"{hostPaths: Deny}", false, 1, stateNo},
		{"{}", false, 1, stateOK},
		{"{}", false, 0, stateNo},
		{"{hostProcess: Deny}", true, 1, stateOK},
		{"{hostProcess: Deny}", true, 2, stateNo},
		{"{equalPower: Deny}", true, 1, stateNo},
		{"{equalPower: Deny}", true, 2, stateOK},
	} {
		f := strict()
		get[*corev1.ConfigMap](t, f, atParameters, 0).Data["parameters.yaml"] = c.text
		conf := get[configurationOf](t, f, atConfigurations, 0)
		if c.isSplit {
			w := *conf.Webhooks[1].DeepCopy()
			w.Name = "hostprocess-pods.pipeguard.dev"
			conf.Webhooks = append(conf.Webhooks, w)
		}
		conf.Webhooks[c.ignored].FailurePolicy = new(admissionregistrationv1.Ignore)
		report, _ := f.survey(t)
		if found := report.of(t, "objects"); found.State != c.want {
			t.Errorf("%+v: %s", c, found)
		}
	}
}

func TestReleasesInTwoNamespacesAreToldApart(t *testing.T) {
	f := strict()
	other := configuration("other", webhook("pods"))
	other.Webhooks[0].ClientConfig.Service.Namespace = "elsewhere"
	f.lists[atConfigurations] = append(f.lists[atConfigurations], other)
	if got := f.run(t, "status"); got.code != cli.ExitBadInput || !strings.Contains(got.errOut, "name one with --guard-namespace") {
		t.Errorf("exit code %d, %s", got.code, got.errOut)
	}
	if got := f.run(t, "status", "--guard-namespace", "guard"); got.code != cli.ExitYes {
		t.Errorf("exit code %d, %s%s", got.code, got.out, got.errOut)
	}
}
