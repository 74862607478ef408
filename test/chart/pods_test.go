package chart_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/google/go-cmp/cmp"
)

// fullname is the beginning of the names of a rendering's objects.
func fullname(rendering string) string {
	if rendering == "everything" {
		return "guard"
	}
	return "pipeguard"
}

// podSpecs returns every pod that a rendering would make.
func podSpecs(t *testing.T, all []object) map[string]corev1.PodSpec {
	t.Helper()
	specs := map[string]corev1.PodSpec{}
	for _, o := range all {
		switch o.kind() {
		case "Deployment":
			specs[o.id()] = decode[appsv1.Deployment](t, o).Spec.Template.Spec
		case "Pod":
			specs[o.id()] = decode[corev1.Pod](t, o).Spec
		}
	}
	if len(specs) != 2 {
		t.Fatalf("%d kinds of pods, want the webhook's and the test's", len(specs))
	}
	return specs
}

// https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted, and a root that cannot be written.
func TestPodsSatisfyTheRestrictedStandard(t *testing.T) {
	for rendering, all := range renderings(t) {
		for id, spec := range podSpecs(t, all) {
			fault := func(text string) { t.Errorf("%s: %s %s", rendering, id, text) }
			if spec.HostNetwork || spec.HostPID || spec.HostIPC {
				fault("shares a namespace with its node")
			}
			for _, v := range spec.Volumes {
				if v.ConfigMap == nil && v.Secret == nil && v.DownwardAPI == nil {
					fault("has the volume " + v.Name)
				}
			}
			for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
				s := c.SecurityContext
				if s == nil || s.AllowPrivilegeEscalation == nil || s.RunAsNonRoot == nil || s.SeccompProfile == nil || s.Capabilities == nil || s.ReadOnlyRootFilesystem == nil {
					fault("leaves a field of its security context to defaults")
					continue
				}
				if *s.AllowPrivilegeEscalation || !*s.RunAsNonRoot || !*s.ReadOnlyRootFilesystem || s.Privileged != nil && *s.Privileged {
					fault("may more than it needs")
				}
				if s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
					fault("keeps system calls or capabilities")
				}
				for _, p := range c.Ports {
					if p.HostPort != 0 {
						fault("takes a port of its node")
					}
				}
				for _, m := range c.VolumeMounts {
					if !m.ReadOnly || m.SubPath != "" {
						fault("mounts " + m.Name + " so that it can be written, or is never updated")
					}
				}
			}
			if s := spec.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot {
				fault("may run as root")
			}
		}
	}
}

func TestOnlyTheWebhookHasAToken(t *testing.T) {
	for rendering, all := range renderings(t) {
		for id, spec := range podSpecs(t, all) {
			isWebhook := strings.HasPrefix(id, "Deployment/")
			if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken != isWebhook {
				t.Errorf("%s: %s mounts a token: %v", rendering, id, spec.AutomountServiceAccountToken)
			}
		}
		account := decode[corev1.ServiceAccount](t, one(t, all, "ServiceAccount", fullname(rendering)+"-webhook"))
		if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
			t.Errorf("%s: other pods of the account mount a token without asking", rendering)
		}
	}
}

func TestARolloutMissesNoReview(t *testing.T) {
	for rendering, all := range renderings(t) {
		d := decode[appsv1.Deployment](t, one(t, all, "Deployment", fullname(rendering)+"-webhook"))
		if r := d.Spec.Strategy.RollingUpdate; r == nil || r.MaxUnavailable.IntValue() != 0 || r.MaxSurge.IntValue() != 1 {
			t.Errorf("%s: a pod may go before its successor is ready: %+v", rendering, r)
		}
		pod := d.Spec.Template.Spec
		c := pod.Containers[0]
		if c.Lifecycle == nil || c.Lifecycle.PreStop == nil || c.Lifecycle.PreStop.Sleep == nil || c.Lifecycle.PreStop.Sleep.Seconds < 1 {
			t.Errorf("%s: the pod stops before nodes know", rendering)
		} else if c.Lifecycle.PreStop.Sleep.Seconds >= *pod.TerminationGracePeriodSeconds {
			t.Errorf("%s: the pod is killed while it waits", rendering)
		}
		if c.ReadinessProbe == nil || c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe == nil || c.LivenessProbe.HTTPGet.Path != "/healthz" {
			t.Errorf("%s: the probes do not ask what they should", rendering)
		}
		ports := map[string]int32{}
		for _, p := range c.Ports {
			ports[p.Name] = p.ContainerPort
		}
		want := map[string]int32{"reviews": 9443, "metrics": 8080, "health": 8081}
		if rendering == "everything" {
			want = map[string]int32{"reviews": 10250, "metrics": 18080, "health": 18081}
		}
		if diff := cmp.Diff(want, ports); diff != "" {
			t.Errorf("%s: ports (-want +got):\n%s", rendering, diff)
		}
		service := decode[corev1.Service](t, one(t, all, "Service", fullname(rendering)+"-webhook"))
		if p := service.Spec.Ports[0]; p.Port != 443 || p.TargetPort.String() != "reviews" {
			t.Errorf("%s: the Service leads to %+v", rendering, p)
		}
	}
}

func TestTheRuntimeIsToldOfTheMemoryLimit(t *testing.T) {
	for limit, want := range map[string]string{
		"512Mi": "483183820", "1Gi": "966367641", "100M": "90000000", "1.5Gi": "1449551462", "300000Ki": "276480000", "\"200000000\"": "180000000",
	} {
		all := render(t, "--set-json", `resources={"limits":{"memory":`+quoted(limit)+`}}`)
		if got := memoryLimit(t, all); got != want {
			t.Errorf("with %s the limit is %q, want %q", limit, got, want)
		}
	}
	if got := memoryLimit(t, render(t, set("resources.limits=null")...)); got != "" {
		t.Errorf("without a limit there is one of %q", got)
	}
	for _, limit := range []string{"lots", "1Ti", "-1Mi", "1 Gi", "500m"} {
		if _, err := template(t, "--set-string", "resources.limits.memory="+limit); err == nil {
			t.Errorf("the limit %q is taken", limit)
		}
	}
}

func quoted(s string) string { return `"` + strings.Trim(s, `"`) + `"` }

func memoryLimit(t *testing.T, all []object) string {
	t.Helper()
	for _, e := range podSpecs(t, all)["Deployment/pipeguard-webhook"].Containers[0].Env {
		if e.Name == "GOMEMLIMIT" {
			return e.Value
		}
	}
	return ""
}

func TestTheImageIsThatOfTheRelease(t *testing.T) {
	for rendering, want := range map[string]string{
		"":                        "docker.io/pipeguard/webhook:0.1.0-dev",
		"image.tag=v9":            "docker.io/pipeguard/webhook:v9",
		"image.repository=mine/w": "mine/w:0.1.0-dev",
	} {
		var args []string
		if rendering != "" {
			args = set(rendering)
		}
		for id, spec := range podSpecs(t, render(t, args...)) {
			if spec.Containers[0].Image != want {
				t.Errorf("%s: %s has the image %s, want %s", rendering, id, spec.Containers[0].Image, want)
			}
		}
	}
	for id, spec := range podSpecs(t, render(t, everything)) {
		if !strings.Contains(spec.Containers[0].Image, "/webhook@sha256:0123") {
			t.Errorf("%s: a digest does not count: %s", id, spec.Containers[0].Image)
		}
	}
}

// The API server sends from an address of a node that no selector can name.
func TestTheNetworkPolicyLetsEveryoneAskForReviews(t *testing.T) {
	for _, rendering := range []string{"no values", "everything"} {
		p := decode[networkingv1.NetworkPolicy](t, one(t, renderings(t)[rendering], "NetworkPolicy", fullname(rendering)+"-webhook"))
		open := map[string]bool{}
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				open[port.Port.String()] = len(rule.From) == 0
			}
		}
		want := map[string]bool{"reviews": true, "health": true, "metrics": rendering == "no values"}
		if diff := cmp.Diff(want, open); diff != "" {
			t.Errorf("%s: ports open to everyone (-want +got):\n%s", rendering, diff)
		}
		if !slices.Equal(p.Spec.PolicyTypes, []networkingv1.PolicyType{"Ingress"}) {
			t.Errorf("%s: the policy is about %v: pods could not reach the API server", rendering, p.Spec.PolicyTypes)
		}
	}
}

func TestANodeCanAlwaysBeDrained(t *testing.T) {
	for _, replicas := range []string{"1", "2"} {
		b := decode[policyv1.PodDisruptionBudget](t, one(t, render(t, set("replicas="+replicas)...), "PodDisruptionBudget", "pipeguard-webhook"))
		if b.Spec.MinAvailable != nil || b.Spec.MaxUnavailable == nil || b.Spec.MaxUnavailable.IntValue() < 1 {
			t.Errorf("with %s replicas the budget is %+v", replicas, b.Spec)
		}
	}
}
