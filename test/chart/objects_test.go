package chart_test

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/google/go-cmp/cmp"
)

const everything = "--values=testdata/everything.yaml"

// renderings are the releases that are looked at, by a word for their values.
func renderings(t *testing.T) map[string][]object {
	t.Helper()
	all := map[string][]string{
		"no values":    nil,
		"cert-manager": set("certificates.certManager.enabled=true"),
		"cert-manager with an issuer": set("certificates.certManager.enabled=true",
			"certificates.certManager.issuerRef.name=ours", "certificates.certManager.issuerRef.kind=ClusterIssuer"),
		"little": append(set("crds.install=false", "resourceQuota.enabled=false", "podDisruptionBudget.enabled=false",
			"networkPolicy.enabled=false", "rbac.aggregateToView=false", "rbac.breakGlassRole=false", "replicas=1",
			"priorityClassName=", "resources.limits=null"), "--set-json", "tolerations=[]"),
		"everything": {everything},
		"nodes":      set("node.enabled=true"),
		"nodes elsewhere": append(nodeValues, set("drivers.vsphere.enabled=true", "node.driverRules.enabled=true",
			"node.metricsAddress=:9187", "node.podMonitor.enabled=true")...),
	}
	for driver := range drivers {
		all[driver] = set("drivers." + driver + ".enabled=true")
	}
	byName := map[string][]object{}
	for name, args := range all {
		byName[name] = render(t, args...)
	}
	return byName
}

// typed reads objects of kinds that Kubernetes has. Others are of operators that may be installed.
var typed = map[string]func(*testing.T, object){
	"v1/ConfigMap":                                     strictly[corev1.ConfigMap],
	"v1/Secret":                                        strictly[corev1.Secret],
	"v1/Service":                                       strictly[corev1.Service],
	"v1/ServiceAccount":                                strictly[corev1.ServiceAccount],
	"v1/ResourceQuota":                                 strictly[corev1.ResourceQuota],
	"v1/Pod":                                           strictly[corev1.Pod],
	"apps/v1/Deployment":                               strictly[appsv1.Deployment],
	"apps/v1/DaemonSet":                                strictly[appsv1.DaemonSet],
	"policy/v1/PodDisruptionBudget":                    strictly[policyv1.PodDisruptionBudget],
	"networking.k8s.io/v1/NetworkPolicy":               strictly[networkingv1.NetworkPolicy],
	"coordination.k8s.io/v1/Lease":                     strictly[coordinationv1.Lease],
	"rbac.authorization.k8s.io/v1/Role":                strictly[rbacv1.Role],
	"rbac.authorization.k8s.io/v1/ClusterRole":         strictly[rbacv1.ClusterRole],
	"rbac.authorization.k8s.io/v1/RoleBinding":         strictly[rbacv1.RoleBinding],
	"rbac.authorization.k8s.io/v1/ClusterRoleBinding":  strictly[rbacv1.ClusterRoleBinding],
	"apiextensions.k8s.io/v1/CustomResourceDefinition": strictly[apiextensionsv1.CustomResourceDefinition],
	"admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration":   strictly[admissionregistrationv1.ValidatingWebhookConfiguration],
	"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy":        strictly[admissionregistrationv1.ValidatingAdmissionPolicy],
	"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding": strictly[admissionregistrationv1.ValidatingAdmissionPolicyBinding],
	"cert-manager.io/v1/Issuer":                                        nil,
	"cert-manager.io/v1/Certificate":                                   nil,
	"monitoring.coreos.com/v1/ServiceMonitor":                          nil,
	"monitoring.coreos.com/v1/PodMonitor":                              nil,
	"monitoring.coreos.com/v1/PrometheusRule":                          nil,
}

func strictly[T any](t *testing.T, o object) {
	t.Helper()
	decode[T](t, o)
}

// clusterWide are the kinds without a namespace.
var clusterWide = []string{
	"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy",
	"ValidatingAdmissionPolicyBinding",
}

func TestEveryObjectIsOfAKnownKindAndHasItsFieldsOnly(t *testing.T) {
	for name, all := range renderings(t) {
		t.Run(name, func(t *testing.T) {
			seen := map[string]bool{}
			for _, o := range all {
				check, ok := typed[o["apiVersion"].(string)+"/"+o.kind()]
				if !ok {
					t.Errorf("%s is of an unknown kind", o.id())
				} else if check != nil {
					check(t, o)
				}
				if seen[o.id()] {
					t.Errorf("%s is there twice", o.id())
				}
				seen[o.id()] = true
			}
			if len(all) < 12 {
				t.Errorf("only %d objects", len(all))
			}
		})
	}
}

func TestEveryObjectSaysWhoseItIsAndWhereItBelongs(t *testing.T) {
	for name, all := range renderings(t) {
		t.Run(name, func(t *testing.T) {
			for _, o := range all {
				labels, ok := o.at("metadata", "labels").(map[string]any)
				if !ok || labels["app.kubernetes.io/part-of"] != "pipeguard" || labels["app.kubernetes.io/instance"] != "pipeguard" {
					t.Errorf("%s has the labels %v", o.id(), labels)
				}
				if name == "everything" && labels["team"] != "storage" {
					t.Errorf("%s lacks the common label", o.id())
				}
				switch at := o.at("metadata", "namespace"); {
				case slices.Contains(clusterWide, o.kind()) && at != nil:
					t.Errorf("%s has the namespace %v", o.id(), at)
				case strings.HasSuffix(o.name(), "-webhook-events"):
					if at != "default" {
						t.Errorf("%s has the namespace %v, but Events are kept in default", o.id(), at)
					}
				case strings.HasSuffix(o.name(), "-webhook-canary") && !slices.Contains(clusterWide, o.kind()):
					if at != "kube-system" {
						t.Errorf("%s has the namespace %v, but the canary is sent to kube-system", o.id(), at)
					}
				case strings.HasSuffix(o.name(), "-webhook-bundles"):
					if name == "everything" && at != "guard-bundles" || name != "everything" {
						t.Errorf("%s has the namespace %v", o.id(), at)
					}
				case isOfNode(o) && !slices.Contains(clusterWide, o.kind()):
					if at != nodeNamespaces[name] {
						t.Errorf("%s has the namespace %v", o.id(), at)
					}
				case !slices.Contains(clusterWide, o.kind()) && at != namespace:
					t.Errorf("%s has the namespace %v", o.id(), at)
				}
			}
		})
	}
}

func TestCommonLabelsCannotReplaceWhatSelectsThePods(t *testing.T) {
	all := render(t, set(`commonLabels.app\.kubernetes\.io/name=other`, `podLabels.app\.kubernetes\.io/instance=other`)...)
	d := decode[appsv1.Deployment](t, one(t, all, "Deployment", "pipeguard-webhook"))
	for key, value := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[key] != value {
			t.Errorf("the pods have the label %s=%s, the selector wants %s", key, d.Spec.Template.Labels[key], value)
		}
	}
	s := decode[corev1.Service](t, one(t, all, "Service", "pipeguard-webhook"))
	if diff := cmp.Diff(d.Spec.Selector.MatchLabels, s.Spec.Selector); diff != "" {
		t.Errorf("the Service selects others than the Deployment:\n%s", diff)
	}
}

func TestAReleaseWithoutValuesHasItsNames(t *testing.T) {
	var names []string
	for _, o := range render(t) {
		names = append(names, o.id())
	}
	slices.Sort(names)
	want := []string{
		"ClusterRole/pipeguard-break-glass", "ClusterRole/pipeguard-reports-view", "ClusterRole/pipeguard-webhook",
		"ClusterRoleBinding/pipeguard-webhook", "ConfigMap/pipeguard-parameters",
		"CustomResourceDefinition/clusterpipereports.pipeguard.dev", "CustomResourceDefinition/guardednodes.pipeguard.dev",
		"CustomResourceDefinition/pipepolicies.pipeguard.dev",
		"CustomResourceDefinition/pipereports.pipeguard.dev", "CustomResourceDefinition/policymodules.pipeguard.dev",
		"Deployment/pipeguard-webhook", "Lease/pipeguard-leader", "NetworkPolicy/pipeguard-webhook", "Pod/pipeguard-webhook-test",
		"PodDisruptionBudget/pipeguard-webhook", "ResourceQuota/pipeguard-webhook", "Role/pipeguard-webhook",
		"Role/pipeguard-webhook-canary", "Role/pipeguard-webhook-events",
		"RoleBinding/pipeguard-webhook", "RoleBinding/pipeguard-webhook-canary", "RoleBinding/pipeguard-webhook-events", "Secret/pipeguard-webhook-cert", "Service/pipeguard-webhook",
		"ServiceAccount/pipeguard-webhook", "ValidatingAdmissionPolicy/pipeguard-webhook-canary", "ValidatingAdmissionPolicyBinding/pipeguard-webhook-canary",
		"ValidatingWebhookConfiguration/pipeguard-policies",
		"ValidatingWebhookConfiguration/pipeguard-webhook",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestNamesFollowTheReleaseAndStayShort(t *testing.T) {
	for release, want := range map[string]string{
		"pipeguard": "pipeguard-webhook", "guard": "guard-pipeguard-webhook", "my-pipeguard": "my-pipeguard-webhook",
		strings.Repeat("x", 53): strings.Repeat("x", 45) + "-webhook",
	} {
		stream, err := helm(t, "template", release, chart)
		if err != nil {
			t.Fatal(err)
		}
		all := objects(t, stream)
		one(t, all, "Service", want)
		for _, o := range all {
			if len(o.name()) > 63 {
				t.Errorf("%s has %d characters", o.id(), len(o.name()))
			}
		}
	}
}

func TestCRDsAreThoseOfTheAPI(t *testing.T) {
	all := render(t)
	for name, text := range read(t, root+"/config/crd", "pipeguard.dev_") {
		if copied := read(t, chart+"/files/crds", name)[name]; copied != text {
			t.Errorf("%s of the chart is not that of config/crd: run make generate", name)
		}
		crd := objects(t, text)[0]
		rendered := one(t, all, "CustomResourceDefinition", crd.name())
		if diff := cmp.Diff(crd["spec"], rendered["spec"]); diff != "" {
			t.Errorf("%s (-config/crd +rendered):\n%s", name, diff)
		}
		if rendered.at("metadata", "annotations", "helm.sh/resource-policy") != "keep" {
			t.Errorf("%s goes with the release, and all objects of it", name)
		}
	}
	for _, o := range all {
		if o.kind() != "CustomResourceDefinition" && o.at("metadata", "annotations", "helm.sh/resource-policy") != nil {
			t.Errorf("%s stays behind", o.id())
		}
	}
	for _, o := range render(t, set("crds.keep=false")...) {
		if o.at("metadata", "annotations", "helm.sh/resource-policy") != nil {
			t.Errorf("%s stays behind with crds.keep=false", o.id())
		}
	}
}
