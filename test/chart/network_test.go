package chart_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// notesOf are the notes of an installation. No cluster is asked.
func notesOf(t *testing.T, args ...string) string {
	t.Helper()
	out, err := helm(t, append([]string{"install", "pipeguard", chart, "--dry-run=client", "--namespace", namespace}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	_, notes, found := strings.Cut(out, "NOTES:\n")
	if !found {
		t.Fatalf("no notes:\n%.500s", out)
	}
	return notes
}

func TestTheWebhookListensWhereItIsSentTo(t *testing.T) {
	for _, ports := range [][3]int{{9443, 8080, 8081}, {10250, 1024, 65535}} {
		values := []string{fmt.Sprintf("webhook.port=%d", ports[0]), fmt.Sprintf("webhook.metricsPort=%d", ports[1]), fmt.Sprintf("webhook.healthPort=%d", ports[2])}
		asStrings := []string{"--set-string", strings.Join(values, ",")}
		for _, args := range [][]string{set(values...), asStrings} {
			all := render(t, args...)
			c := decode[appsv1.Deployment](t, one(t, all, "Deployment", "pipeguard-webhook")).Spec.Template.Spec.Containers[0]
			config := webhookConfig(t, all, "pipeguard-webhook")
			for i, key := range []string{"listenAddress", "metricsBindAddress", "healthProbeBindAddress"} {
				if want := fmt.Sprintf(":%d", ports[i]); config[key] != want || int(c.Ports[i].ContainerPort) != ports[i] {
					t.Errorf("%q: %s is %v and the port %+v, want %s", args, key, config[key], c.Ports[i], want)
				}
			}
			for i, p := range decode[corev1.Service](t, one(t, all, "Service", "pipeguard-webhook")).Spec.Ports {
				if p.TargetPort.String() != c.Ports[i].Name {
					t.Errorf("%q: the Service leads to %s, not to %s", args, p.TargetPort.String(), c.Ports[i].Name)
				}
			}
			for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				if probe.HTTPGet.Port.String() != "health" || c.Ports[2].Name != "health" {
					t.Errorf("%q: a probe asks at %s", args, probe.HTTPGet.Port.String())
				}
			}
		}
	}
}

func TestPortsThatCannotBeAreRefused(t *testing.T) {
	for says, args := range map[string][]string{
		"webhook.port and webhook.metricsPort are both 8080":                                         set("webhook.port=8080"),
		"webhook.metricsPort and webhook.healthPort are both 9000":                                   {"--set-string", "webhook.metricsPort=9000", "--set", "webhook.healthPort=9000"},
		"webhook.port: 10250 is a port of the kubelet or kube-proxy":                                 set("hostNetwork=true", "webhook.port=10250"),
		"webhook.healthPort: 10256 is a port of the kubelet or kube-proxy":                           set("hostNetwork=true", "webhook.healthPort=10256"),
		"config.listenAddress is :9444: its port must be that of webhook.port":                       set("config.listenAddress=:9444"),
		"config.healthProbeBindAddress is 0: its port must be that of webhook.healthPort":            {"--set-string", "config.healthProbeBindAddress=0"},
		"config.metricsBindAddress is 127.0.0.1:18080: its port must be that of webhook.metricsPort": set("config.metricsBindAddress=127.0.0.1:18080"),
		"config.listenAddress is [::1]:19443: its port must be that of webhook.port":                 set("config.listenAddress=[::1]:19443"),
		"config.metricsBindAddress is 8080: its port must be that of webhook.metricsPort":            {"--set-string", "config.metricsBindAddress=8080"},
	} {
		if _, err := template(t, args...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", args, err, says)
		}
	}
	for _, args := range [][]string{
		{"--set-string", "config.metricsBindAddress=0"}, set("config.listenAddress=0.0.0.0:9443"), set("webhook.port=9444", "config.listenAddress=:9444"),
		set("config.metricsBindAddress=127.0.0.1:8080"), set("webhook.port=10250"),
	} {
		if _, err := template(t, args...); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestPodsOnTheNetworkOfTheirNodes(t *testing.T) {
	all := render(t, set("hostNetwork=true")...)
	d := decode[appsv1.Deployment](t, one(t, all, "Deployment", "pipeguard-webhook"))
	if pod := d.Spec.Template.Spec; !pod.HostNetwork || pod.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
		t.Errorf("the pods have the network of their nodes: %t, and look names up by %q", pod.HostNetwork, pod.DNSPolicy)
	}
	// With as many replicas as nodes a successor finds no free ports before a pod goes: waiting for it would never end. One at most goes.
	if r := d.Spec.Strategy.RollingUpdate; r.MaxUnavailable.IntValue() != 1 || r.MaxSurge.IntValue() != 1 {
		t.Errorf("a rollout is %+v", r)
	}
	for _, p := range d.Spec.Template.Spec.Containers[0].Ports {
		if p.ContainerPort < 1024 { // each is a port of the node, by which the scheduler keeps pods apart
			t.Errorf("the port %+v needs a right that the pods have not", p)
		}
	}
	if test := decode[corev1.Pod](t, one(t, all, "Pod", "pipeguard-webhook-test")); test.Spec.HostNetwork {
		t.Error("the test's pod has the network of its node, which it needs for nothing")
	}
	for _, o := range all {
		if o.kind() == "NetworkPolicy" {
			t.Errorf("%s promises what it does not keep", o.id())
		}
	}
	if notes := notesOf(t, set("hostNetwork=true", "webhook.port=19443")...); !strings.Contains(notes, "the ports 19443, 8080 and 8081 are free") ||
		!strings.Contains(notes, "kubectl label namespace "+namespace+" pod-security.kubernetes.io/enforce=privileged") {
		t.Errorf("the notes do not say what the pods need:\n%s", notes)
	}
	if notes := notesOf(t); strings.Contains(notes, "network of their nodes") || strings.Contains(notes, "crds.keep") {
		t.Errorf("the notes of a release without values:\n%s", notes)
	}
	if notes := notesOf(t, set("crds.keep=false")...); !strings.Contains(notes, "WARNING: crds.keep is false") {
		t.Errorf("the notes do not warn of what an uninstall deletes:\n%s", notes)
	}
}

func TestTheDNSPolicyIsThatOfTheValues(t *testing.T) {
	for want, args := range map[corev1.DNSPolicy][]string{
		"": nil, corev1.DNSDefault: set("hostNetwork=true", "dnsPolicy=Default"), corev1.DNSClusterFirst: set("dnsPolicy=ClusterFirst"),
		corev1.DNSClusterFirstWithHostNet: set("hostNetwork=true", "dnsPolicy=null"),
	} {
		pod := decode[appsv1.Deployment](t, one(t, render(t, args...), "Deployment", "pipeguard-webhook")).Spec.Template.Spec
		if pod.DNSPolicy != want {
			t.Errorf("%q: %q, want %q", args, pod.DNSPolicy, want)
		}
	}
}
