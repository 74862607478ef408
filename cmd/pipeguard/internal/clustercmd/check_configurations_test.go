package clustercmd

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/entries"
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
			f.webhook(t, func(w *admissionregistrationv1.ValidatingWebhook) { w.MatchConditions[0].Expression = "false" })
		}, "objects", "its entries are not as the chart made them"},
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
			f.webhook(t, func(w *admissionregistrationv1.ValidatingWebhook) { w.Rules = nil })
		}, "objects", "CREATE of pods is not sent"},
		"an operation that is not sent": {func(f *fakeAPI) {
			f.webhook(t, func(w *admissionregistrationv1.ValidatingWebhook) {
				w.Rules[0].Operations = []admissionregistrationv1.OperationType{"CREATE"}
			})
		}, "objects", "UPDATE of pods is not sent"},
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
		ignored string // the prefix
		want    string
	}{
		{"{hostProcess: Deny}", false, entries.PathPrefix, stateNo},
		{"{hostPaths: Deny}", false, entries.PathPrefix, stateNo},
		{"{}", false, entries.PathPrefix, stateOK},
		{"{}", false, "", stateNo},
		{"{hostProcess: Deny}", true, entries.PathPrefix, stateOK},
		{"{hostProcess: Deny}", true, entries.ProcessPrefix, stateNo},
		{"{equalPower: Deny}", true, entries.PathPrefix, stateNo},
		{"{equalPower: Deny}", true, entries.ProcessPrefix, stateOK},
	} {
		f := strict()
		get[*corev1.ConfigMap](t, f, atParameters, 0).Data["parameters.yaml"] = c.text
		conf := get[configurationOf](t, f, atConfigurations, 0)
		all := conf.Webhooks
		if c.isSplit {
			for _, name := range entries.WithPrefix(entries.ProcessPrefix) {
				all = append(all, webhook(strings.TrimSuffix(name, entries.Suffix)))
			}
		}
		for i := range all {
			if entries.PrefixOf(all[i].Name) == c.ignored {
				all[i].FailurePolicy = new(admissionregistrationv1.Ignore)
			}
		}
		f.lists[atConfigurations][0] = configuration(conf.Name, all...)
		report, _ := f.survey(t)
		if found := report.of(t, "objects"); found.State != c.want {
			t.Errorf("%+v: %s", c, found)
		}
	}
}

// Administrators who change entries on purpose remove the annotation, and so does an attacker.
func TestEntriesOfWhichNobodySaysHowTheyWereMade(t *testing.T) {
	for i, name := range []string{"objects", "changes"} {
		f := strict()
		conf := get[configurationOf](t, f, atConfigurations, i)
		for j := range conf.Webhooks {
			conf.Webhooks[j].MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "x", Expression: "request.userInfo.username != 'mallory'"}}
		}
		conf.Annotations = nil
		report, got := f.survey(t)
		found := report.of(t, name)
		if got.code != cli.ExitBadInput || report.Verdict != verdictUnknown || found.State != stateUnknown || !strings.Contains(found.String(), "helm upgrade writes the annotation") {
			t.Errorf("exit code %d, verdict %s, %s", got.code, report.Verdict, found)
		}
		conf.Webhooks[0].ClientConfig.CABundle = nil // a fault is one all the same
		report, got = f.survey(t)
		if found := report.of(t, name); got.code != cli.ExitNo || found.State != stateNo || !strings.Contains(found.String(), "helm upgrade writes the annotation") {
			t.Errorf("with a fault: exit code %d, %s", got.code, found)
		}
	}
}

func TestRulesThatMatchNothingCoverNothing(t *testing.T) {
	every := func(i int, change func(*admissionregistrationv1.Rule)) func(*fakeAPI) {
		return func(f *fakeAPI) {
			webhooks := get[configurationOf](t, f, atConfigurations, i).Webhooks
			for j := range webhooks {
				for k := range webhooks[j].Rules {
					change(&webhooks[j].Rules[k].Rule)
				}
			}
		}
	}
	scope := func(s admissionregistrationv1.ScopeType) func(*admissionregistrationv1.Rule) {
		return func(r *admissionregistrationv1.Rule) { r.Scope = &s }
	}
	versions := func(v ...string) func(*admissionregistrationv1.Rule) {
		return func(r *admissionregistrationv1.Rule) { r.APIVersions = v }
	}
	findsFaults(t, map[string]fault{
		"pods of the cluster":           {every(0, scope(admissionregistrationv1.ClusterScope)), "objects", "CREATE of pods is not sent"},
		"ephemeral containers":          {every(0, scope(admissionregistrationv1.ClusterScope)), "objects", "UPDATE of pods/ephemeralcontainers is not sent"},
		"volumes of namespaces":         {every(0, scope(admissionregistrationv1.NamespacedScope)), "objects", "CREATE of persistentvolumes is not sent"},
		"policies of namespaces":        {every(1, scope(admissionregistrationv1.NamespacedScope)), "changes", "CREATE of pipepolicies.pipeguard.dev is not sent"},
		"pods of another version":       {every(0, versions("v1alpha1")), "objects", "CREATE of pods is not sent"},
		"policies of another version":   {every(1, versions("v1")), "changes", "CREATE of pipepolicies.pipeguard.dev is not sent"},
		"rules without versions at all": {every(0, versions()), "objects", "CREATE of pods is not sent"},
	})
	for name, change := range map[string]func(*admissionregistrationv1.Rule){
		"every scope": scope(admissionregistrationv1.AllScopes), "no scope": func(r *admissionregistrationv1.Rule) { r.Scope = nil },
		"every version": versions("*"), "one more version": func(r *admissionregistrationv1.Rule) { r.APIVersions = append([]string{"v0"}, r.APIVersions...) },
		"every group":    func(r *admissionregistrationv1.Rule) { r.APIGroups = []string{"*"} },
		"every resource": func(r *admissionregistrationv1.Rule) { r.Resources = []string{"*/*"} },
	} {
		f := strict()
		every(0, change)(f)
		every(1, change)(f)
		if report, got := f.survey(t); got.code != cli.ExitYes {
			t.Errorf("%s: exit code %d, %s, %s", name, got.code, report.of(t, "objects"), report.of(t, "changes"))
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
