package chart_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// rights writes each rule as group/resources[names]: verbs.
func rights(rules []rbacv1.PolicyRule) []string {
	var out []string
	for _, r := range rules {
		text := strings.Join(r.APIGroups, ",") + "/" + strings.Join(r.Resources, ",")
		if len(r.ResourceNames) > 0 {
			text += "[" + strings.Join(r.ResourceNames, ",") + "]"
		}
		out = append(out, text+": "+strings.Join(r.Verbs, " "))
	}
	return out
}

func TestTheWebhookMayDoThisAndNothingElse(t *testing.T) {
	all := render(t)
	cluster := decode[rbacv1.ClusterRole](t, one(t, all, "ClusterRole", "pipeguard-webhook"))
	if diff := cmp.Diff(clusterRights, rights(cluster.Rules)); diff != "" {
		t.Errorf("in the cluster (-want +got):\n%s", diff)
	}
	own := decode[rbacv1.Role](t, one(t, all, "Role", "pipeguard-webhook"))
	if diff := cmp.Diff(ownRights, rights(own.Rules)); diff != "" {
		t.Errorf("in its namespace (-want +got):\n%s", diff)
	}
	events := decode[rbacv1.Role](t, one(t, all, "Role", "pipeguard-webhook-events"))
	if diff := cmp.Diff(eventRights, rights(events.Rules)); diff != "" {
		t.Errorf("in the namespace default (-want +got):\n%s", diff)
	}
	canary := decode[rbacv1.Role](t, one(t, all, "Role", "pipeguard-webhook-canary"))
	if diff := cmp.Diff(canaryRights, rights(canary.Rules)); diff != "" || canary.Namespace != "kube-system" {
		t.Errorf("in the namespace %s (-want +got):\n%s", canary.Namespace, diff)
	}
}

func TestWithoutACanaryTheWebhookHasNoRightInAnotherNamespaceForIt(t *testing.T) {
	all := render(t, set("webhook.canaryNamespace=")...)
	for _, o := range all {
		if strings.HasSuffix(o.id(), "-canary") {
			t.Errorf("there is %s", o.id())
		}
	}
	if got := webhookConfig(t, all, "pipeguard-webhook").at("cluster", "canaryNamespace"); got != "-" {
		t.Errorf("the webhook is told to send one to %v", got)
	}
}

// What the expressions do is tested with a real API server.
func TestTheWebhookMayChangeLabelsOfNodesOnlyWhereThatIsAskedFor(t *testing.T) {
	const policy = "pipeguard-webhook-node-labels"
	for enabled, want := range map[bool]string{true: "/nodes: get list patch", false: "/nodes: get"} {
		all := render(t, set(fmt.Sprintf("nodeLabels.enabled=%t", enabled))...)
		if got := rights(decode[rbacv1.ClusterRole](t, one(t, all, "ClusterRole", "pipeguard-webhook")).Rules); !slices.Contains(got, want) {
			t.Errorf("%t: %q", enabled, got)
		}
		if got := webhookConfig(t, all, "pipeguard-webhook").at("cluster", "labelNodes"); got != nil != enabled {
			t.Errorf("%t: labelNodes is %v", enabled, got)
		}
		if !enabled {
			if slices.ContainsFunc(all, func(o object) bool { return strings.HasSuffix(o.id(), policy) }) {
				t.Error("there is a policy about a right that is not given")
			}
			continue
		}
		p := decode[admissionregistrationv1.ValidatingAdmissionPolicy](t, one(t, all, "ValidatingAdmissionPolicy", policy))
		r := p.Spec.MatchConstraints.ResourceRules
		if *p.Spec.FailurePolicy != admissionregistrationv1.Fail || len(r) != 1 || !slices.Equal(r[0].Resources, []string{"nodes"}) || len(p.Spec.MatchConditions) != 1 ||
			p.Spec.MatchConditions[0].Expression != "request.userInfo.username == 'system:serviceaccount:"+namespace+":pipeguard-webhook'" {
			t.Errorf("%+v", p.Spec)
		}
		for _, own := range []string{v1alpha1.LabelServesPipes, v1alpha1.LabelPipePrefix} {
			if !strings.Contains(p.Spec.Validations[0].Expression, "'"+own+"'") {
				t.Errorf("it does not permit %s", own)
			}
		}
		b := decode[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, one(t, all, "ValidatingAdmissionPolicyBinding", policy))
		if b.Spec.PolicyName != policy || b.Spec.MatchResources != nil || !slices.Equal(b.Spec.ValidationActions, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}) {
			t.Errorf("%+v", b.Spec)
		}
	}
}

// These are written out, so that a new right is seen twice by whoever grants it.
var (
	clusterRights = []string{
		"/pods,podtemplates,replicationcontrollers,persistentvolumes: list",
		"apps/deployments,daemonsets,statefulsets,replicasets: list",
		"batch/jobs,cronjobs: list",
		"/namespaces: get list watch",
		"pipeguard.dev/pipepolicies,policymodules: get list watch",
		"pipeguard.dev/pipepolicies/status,policymodules/status: patch",
		"pipeguard.dev/pipereports,clusterpipereports: get list create update delete",
		"pipeguard.dev/guardednodes: get list watch delete",
		"/nodes: get",
		"admissionregistration.k8s.io/validatingwebhookconfigurations[pipeguard-webhook,pipeguard-policies]: get list watch patch",
		"admissionregistration.k8s.io/validatingadmissionpolicies,validatingadmissionpolicybindings[pipeguard-floor,pipeguard-floor-volumes]: get list watch create update patch delete",
		"rbac.authorization.k8s.io/clusterroles[pipeguard-webhook]: get",
	}
	ownRights = []string{
		"coordination.k8s.io/leases: get list watch create update patch delete",
		"/pods: get",
		",events.k8s.io/events: create patch",
		"/secrets[pipeguard-webhook-cert]: get list watch patch",
	}
	// A PodTemplate is no pod, and nothing makes one of it.
	canaryRights = []string{"/podtemplates: create"}
	eventRights  = []string{"events.k8s.io/events: create patch"}
)

func TestWithCertManagerTheWebhookReadsNoSecret(t *testing.T) {
	all := render(t, set("certificates.certManager.enabled=true")...)
	rules := slices.Concat(decode[rbacv1.ClusterRole](t, one(t, all, "ClusterRole", "pipeguard-webhook")).Rules,
		decode[rbacv1.Role](t, one(t, all, "Role", "pipeguard-webhook")).Rules)
	for _, r := range rules {
		if slices.Contains(r.Resources, "secrets") {
			t.Errorf("it may %v Secrets", r.Verbs)
		}
	}
}

func TestNoRoleGrantsWhatLeadsFurther(t *testing.T) {
	for rendering, all := range renderings(t) {
		for _, o := range all {
			if o.kind() != "Role" && o.kind() != "ClusterRole" {
				continue
			}
			for _, r := range decode[rbacv1.ClusterRole](t, object{"metadata": o["metadata"], "rules": o["rules"]}).Rules {
				for _, word := range slices.Concat(r.APIGroups, r.Resources, r.Verbs) {
					if strings.Contains(word, "*") || slices.Contains([]string{"bind", "escalate", "impersonate", "pods/exec", "serviceaccounts/token"}, word) {
						t.Errorf("%s: %s grants %s", rendering, o.id(), word)
					}
				}
				if slices.Contains(r.Resources, "secrets") && (o.kind() != "Role" || len(r.ResourceNames) != 1) {
					t.Errorf("%s: %s grants Secrets that are not named", rendering, o.id())
				}
			}
		}
	}
}

func TestBindingsAreForTheWebhookAlone(t *testing.T) {
	for rendering, all := range renderings(t) {
		bound := 0
		for _, o := range all {
			if o.kind() != "RoleBinding" && o.kind() != "ClusterRoleBinding" {
				continue
			}
			if isOfNode(o) { // see TestTheNodesPodsMayReportAndNothingElse
				continue
			}
			bound++
			b := decode[rbacv1.ClusterRoleBinding](t, o)
			want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: fullname(rendering) + "-webhook", Namespace: namespace}}
			if diff := cmp.Diff(want, b.Subjects); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", rendering, o.id(), diff)
			}
			if strings.HasSuffix(b.Name, "-bundles") || strings.HasSuffix(b.Name, "-witness") || strings.Contains(b.Name, "-reports-") {
				bound-- // see TestTheWebhookMayWriteTheBundlesOfItsPools, TestTheWebhookMayWriteWhatTheWitnessRemembers and TestStandardReportsComeWithTheirRightsAlone
			}
			if b.RoleRef.Name != b.Name || !strings.HasPrefix(b.Name, fullname(rendering)+"-webhook") {
				t.Errorf("%s: %s grants %s", rendering, o.id(), b.RoleRef.Name)
			}
		}
		if bound != 4 {
			t.Errorf("%s: %d bindings", rendering, bound)
		}
	}
}
