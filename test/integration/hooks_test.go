//go:build !windows

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/entries"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// stored is a webhook configuration as the API server has it.
func stored(ctx context.Context, t *testing.T, name string) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	t.Helper()
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	return c, at(t).api.Client.Get(ctx, client.ObjectKey{Name: name}, c)
}

// inForce says which entries of both configurations lack rules.
func inForce(ctx context.Context, t *testing.T) error {
	t.Helper()
	for _, name := range []string{cluster.ObjectConfiguration, cluster.PolicyConfiguration} {
		c, err := stored(ctx, t, name)
		if err != nil {
			return err
		}
		for _, w := range c.Webhooks {
			if len(w.Rules) == 0 {
				return fmt.Errorf("%s has no rules", w.Name)
			}
		}
	}
	return nil
}

// measured waits until the metrics of a replica have a line.
func measured(t *testing.T, replica *cluster.Replica, line string) {
	t.Helper()
	eventually(t, line, func(ctx context.Context) error {
		text, err := replica.Metrics(ctx)
		if err == nil && !slices.Contains(strings.Split(text, "\n"), line) {
			err = errors.New("not in the metrics")
		}
		return err
	})
}

// reinstalled has the site's release as it is before its first replica: its configurations are new, and it has no replica.
func reinstalled(t *testing.T) *cluster.Release {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	release := guarded(t)
	for _, o := range slices.Clone(release.Replicas) {
		if err := release.StopReplica(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []func(context.Context) error{release.Suspend, release.SuspendPolicies, release.Announce} {
		if err := step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if len(release.Replicas) == 0 {
			if _, err := release.AddReplica(ctx); err != nil {
				t.Error(err)
			}
		}
		if err := release.AwaitAsked(ctx); err != nil {
			t.Error(err)
		}
	})
	return release
}

func TestAnInstallationWithoutReplicasBlocksNobody(t *testing.T) {
	release := reinstalled(t)
	space := namespace(t, "first")
	evil := []client.Object{pod(space, "", pipe), named(&corev1.PodTemplate{Template: corev1.PodTemplateSpec{Spec: spec("", pipe)}}, space)}
	for _, o := range evil {
		if err := at(t).api.Client.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("before there is a replica: %T: %v", o, err)
		}
	}
	c, err := stored(t.Context(), t, cluster.ObjectConfiguration)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Webhooks) != 14 || slices.ContainsFunc(c.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return len(w.Rules) > 0 }) {
		t.Fatalf("%d entries, and some have rules", len(c.Webhooks))
	}

	replica, err := release.AddReplica(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is in force", func(ctx context.Context) error { return inForce(ctx, t) })
	if err := release.AwaitAsked(t.Context()); err != nil {
		t.Fatal(err)
	}
	measured(t, replica, `pipeguard_webhook_in_force{configuration="`+cluster.ObjectConfiguration+`"} 1`)
	measured(t, replica, `pipeguard_webhook_in_force{configuration="`+cluster.PolicyConfiguration+`"} 1`)

	// Once in force they stay so, whoever is left.
	if err := release.StopReplica(t.Context(), replica); err != nil {
		t.Fatal(err)
	}
	if err := inForce(t.Context(), t); err != nil {
		t.Error(err)
	}
	if err := at(t).api.Client.Create(t.Context(), pod(space, "", pipe), client.DryRunAll); !unanswered(err) {
		t.Errorf("without a replica: %v", err)
	}
}

// A replica that is well, and that the API server does not reach, must not lock the cluster.
func TestAnAPIServerThatDoesNotReachTheWebhookIsNotToldToAskItAboutPods(t *testing.T) {
	release := reinstalled(t)
	release.Cut(true)
	t.Cleanup(func() { release.Cut(false) })
	replica, err := release.AddReplica(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	measured(t, replica, `pipeguard_api_canary{answer="unreachable"} 1`)
	c, err := stored(t.Context(), t, cluster.ObjectConfiguration)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range c.Webhooks {
		if has := len(w.Rules) > 0; has != strings.HasSuffix(w.Name, "podtemplates.pipeguard.dev") {
			t.Errorf("%s has rules: %t", w.Name, has)
		}
	}
	if err := at(t).api.Client.Create(t.Context(), pod(namespace(t, "first"), "", pipe), client.DryRunAll); err != nil {
		t.Errorf("a pod: %v", err)
	}
	release.Cut(false)
	eventually(t, "it is in force", func(ctx context.Context) error { return inForce(ctx, t) })
}

// The chart leaves the rules out, and what applies a chart leaves alone what is not in it.
func TestWhatAppliesTheChartLeavesTheRulesAlone(t *testing.T) {
	release := guarded(t)
	eventually(t, "it is in force", func(ctx context.Context) error { return inForce(ctx, t) })
	before, err := stored(t.Context(), t, cluster.ObjectConfiguration)
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := at(t).api.Kubectl(shared.tools, at(t).api.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range [][]string{{"apply"}, {"apply", "--server-side", "--force-conflicts", "--field-manager=helm"}} {
		for _, timeout := range []string{"28", "29", "30"} { // from the second time on there is a state that was applied last
			c, err := rendered(t, "webhook.timeoutSeconds="+timeout).Configuration(cluster.ObjectConfiguration, release.Balancer.Port(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, errOut, code, err := kubectl.Run(t.Context(), text(t, c), append(how, "-f", "-")...); err != nil || code != 0 {
				t.Fatalf("%v: exit code %d: %s: %v", how, code, errOut, err)
			}
			after, err := stored(t.Context(), t, cluster.ObjectConfiguration)
			if err != nil {
				t.Fatal(err)
			}
			for i, w := range after.Webhooks {
				want, _ := entries.RulesOf(w.Name)
				if !apiequality.Semantic.DeepEqual(w.Rules, want) || string(w.ClientConfig.CABundle) != string(before.Webhooks[i].ClientConfig.CABundle) || fmt.Sprint(*w.TimeoutSeconds) != timeout {
					t.Errorf("%v, %s: %s has the rules %v and waits %d s", how, timeout, w.Name, w.Rules, *w.TimeoutSeconds)
				}
			}
		}
	}
}

func TestRulesThatSomebodyChangedArePutBack(t *testing.T) {
	release := guarded(t)
	eventually(t, "it is in force", func(ctx context.Context) error { return inForce(ctx, t) })
	replica := release.Replicas[0]
	measured(t, replica, `pipeguard_api_canary{answer="refused"} 1`) // then it has seen them all
	for name, change := range map[string]func(w *admissionregistrationv1.ValidatingWebhook){
		"removed": func(w *admissionregistrationv1.ValidatingWebhook) { w.Rules = nil },
		"changed": func(w *admissionregistrationv1.ValidatingWebhook) {
			w.Rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
		},
	} {
		c, err := stored(t.Context(), t, cluster.ObjectConfiguration)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := entries.RulesOf(c.Webhooks[0].Name)
		changed(t, c, func() { change(&c.Webhooks[0]) })
		eventually(t, name+" rules are back", func(ctx context.Context) error {
			c, err := stored(ctx, t, cluster.ObjectConfiguration)
			if err == nil && !apiequality.Semantic.DeepEqual(c.Webhooks[0].Rules, want) {
				err = fmt.Errorf("they are %v", c.Webhooks[0].Rules)
			}
			return err
		})
	}
	eventually(t, "it is counted", func(ctx context.Context) error {
		text, err := replica.Metrics(ctx)
		if err == nil && !strings.Contains(text, `pipeguard_webhook_rules_restored_total{configuration="`+cluster.ObjectConfiguration+`"} `) ||
			strings.Contains(text, `pipeguard_webhook_rules_restored_total{configuration="`+cluster.ObjectConfiguration+`"} 0`) {
			err = errors.New("it is not")
		}
		return err
	})
}

// As the admissions enforcer of AKS does it: https://github.com/Azure/AKS/issues/4002.
func TestASelectorThatLeavesOutKubeSystemIsReported(t *testing.T) {
	release := guarded(t)
	replica := release.Replicas[0]
	measured(t, replica, `pipeguard_api_canary{answer="refused"} 1`)
	system := &corev1.Namespace{}
	if err := at(t).api.Client.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		t.Fatal(err)
	}
	changed(t, system, func() {
		if system.Labels == nil {
			system.Labels = map[string]string{}
		}
		system.Labels["control-plane"] = "true"
	})
	c, err := stored(t.Context(), t, cluster.ObjectConfiguration)
	if err != nil {
		t.Fatal(err)
	}
	changed(t, c, func() {
		for i := range c.Webhooks {
			c.Webhooks[i].NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "control-plane", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}},
			}}
		}
	})
	measured(t, replica, `pipeguard_webhook_configuration_changed{configuration="`+cluster.ObjectConfiguration+`",part="selectors"} 1`)
	measured(t, replica, `pipeguard_api_canary{answer="admitted"} 1`)

	changed(t, c, func() {
		for i := range c.Webhooks {
			c.Webhooks[i].NamespaceSelector = nil
		}
	})
	measured(t, replica, `pipeguard_webhook_configuration_changed{configuration="`+cluster.ObjectConfiguration+`",part="selectors"} 0`)
	measured(t, replica, `pipeguard_api_canary{answer="refused"} 1`)
}

// The digest of what is stored, with the API server's defaults, is that of what the chart made.
func TestTheEntriesAreStoredAsTheChartMadeThem(t *testing.T) {
	release := guarded(t)
	replica := release.Replicas[0]
	for _, name := range []string{cluster.ObjectConfiguration, cluster.PolicyConfiguration} {
		measured(t, replica, `pipeguard_webhook_configuration_changed{configuration="`+name+`",part="entries"} 0`)
		c, err := stored(t.Context(), t, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range []func(w *admissionregistrationv1.ValidatingWebhook){
			func(w *admissionregistrationv1.ValidatingWebhook) {
				w.FailurePolicy = new(admissionregistrationv1.Ignore)
			},
			func(w *admissionregistrationv1.ValidatingWebhook) {
				w.MatchConditions = append(w.MatchConditions, admissionregistrationv1.MatchCondition{Name: "never", Expression: "false"})
			},
		} {
			was := c.Webhooks[0].DeepCopy()
			changed(t, c, func() { change(&c.Webhooks[0]) })
			measured(t, replica, `pipeguard_webhook_configuration_changed{configuration="`+name+`",part="entries"} 1`)
			changed(t, c, func() { c.Webhooks[0] = *was })
			measured(t, replica, `pipeguard_webhook_configuration_changed{configuration="`+name+`",part="entries"} 0`)
		}
	}
}

// The right to create PodTemplates in one namespace, for which nothing is created, is all that the canary takes.
func TestTheCanaryStoresNothingAndItsRightLeadsNowhere(t *testing.T) {
	release := guarded(t)
	measured(t, release.Replicas[0], `pipeguard_api_canary{answer="refused"} 1`)
	own := newClient(t, release.Config)
	err := own.Create(t.Context(), admission.APICanary(metav1.NamespaceSystem), client.DryRunAll)
	refused(t, err, "PG003")
	for _, o := range []client.Object{pod(metav1.NamespaceSystem, ""), admission.APICanary(metav1.NamespaceDefault)} {
		if err := own.Create(t.Context(), o, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "cannot create resource") {
			t.Errorf("%T in %s: %v", o, o.GetNamespace(), err)
		}
	}
	var all corev1.PodTemplateList
	if err := at(t).api.Client.List(t.Context(), &all, client.InNamespace(metav1.NamespaceSystem)); err != nil || len(all.Items) > 0 {
		t.Errorf("%d PodTemplates are stored: %v", len(all.Items), err)
	}
}

// What the right permits beyond a dry run is refused by an admission policy of the chart, whatever is in the PodTemplate.
func TestTheRightOfTheCanaryIsForDryRunsAlone(t *testing.T) {
	release := guarded(t)
	for _, o := range shared.chart.Kinds("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding") {
		created(t, o.DeepCopy())
		deleted(t, o.DeepCopy())
	}
	own := newClient(t, release.Config)
	plain := func() *corev1.PodTemplate {
		return named(&corev1.PodTemplate{Template: corev1.PodTemplateSpec{Spec: spec("")}}, metav1.NamespaceSystem)
	}
	eventually(t, "a PodTemplate that would be stored is refused", func(ctx context.Context) error {
		o := plain()
		err := own.Create(ctx, o)
		if err == nil {
			return errors.Join(errors.New("it was stored"), at(t).api.Client.Delete(ctx, o))
		}
		if !strings.Contains(err.Error(), "the webhook creates no PodTemplate but in dry runs") {
			return err
		}
		return nil
	})
	if err := own.Create(t.Context(), plain(), client.DryRunAll); err != nil {
		t.Errorf("in a dry run: %v", err)
	}
	refused(t, own.Create(t.Context(), admission.APICanary(metav1.NamespaceSystem), client.DryRunAll), "PG003")
	o := plain() // of somebody else
	created(t, o)
	deleted(t, o)
}
