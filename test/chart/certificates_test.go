package chart_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// webhookPod returns the container and the volumes of the webhook.
func webhookPod(t *testing.T, all []object, name string) (corev1.Container, []corev1.Volume) {
	t.Helper()
	spec := decode[appsv1.Deployment](t, one(t, all, "Deployment", name)).Spec.Template.Spec
	return spec.Containers[0], spec.Volumes
}

func TestTheChartMakesNoCertificate(t *testing.T) {
	for rendering, all := range renderings(t) {
		for _, o := range all {
			if o.kind() == "Secret" && (o["data"] != nil || o["stringData"] != nil || o["type"] != "Opaque") {
				t.Errorf("%s: %s has content, which an upgrade would write over what is in use", rendering, o.id())
			}
		}
	}
}

func TestTheWebhookUsesTheCertificateThatItWasMade(t *testing.T) {
	_, volumes := webhookPod(t, render(t), "pipeguard-webhook")
	certificate := webhookConfig(t, render(t), "pipeguard-webhook")["certificate"]
	if diff := cmp.Diff(map[string]any{"secret": "pipeguard-webhook-cert"}, certificate); diff != "" || len(volumes) != 2 {
		t.Errorf("%d volumes, certificate (-want +got):\n%s", len(volumes), diff)
	}
	for _, o := range render(t) {
		if o["apiVersion"] == "cert-manager.io/v1" || o.at("metadata", "annotations", "cert-manager.io/inject-ca-from") != nil {
			t.Errorf("%s is for cert-manager", o.id())
		}
	}
}

func TestWithCertManagerEveryPartMeansOneCertificate(t *testing.T) {
	for rendering, issuer := range map[string]string{"cert-manager": "pipeguard-webhook-ca", "cert-manager with an issuer": "ours", "everything": "guard-webhook-ca"} {
		all, name := renderings(t)[rendering], fullname(rendering)+"-webhook"
		certificate := one(t, all, "Certificate", name)
		if certificate.at("spec", "secretName") != name+"-cert" || certificate.at("spec", "issuerRef", "name") != issuer {
			t.Errorf("%s: the certificate is %v", rendering, certificate["spec"])
		}
		service := name + "." + namespace + ".svc"
		if names, _ := certificate.at("spec", "dnsNames").([]any); !slices.Contains(names, any(service)) {
			t.Errorf("%s: the certificate is for %v, not for %s", rendering, names, service)
		}
		for _, configuration := range []string{name, fullname(rendering) + "-policies"} {
			from := one(t, all, "ValidatingWebhookConfiguration", configuration).at("metadata", "annotations", "cert-manager.io/inject-ca-from")
			if from != namespace+"/"+name {
				t.Errorf("%s: the authority in %s is that of %v", rendering, configuration, from)
			}
		}
		c, volumes := webhookPod(t, all, name)
		if webhookConfig(t, all, name).at("certificate", "dir") != "/etc/pipeguard/certificate" ||
			!slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
				return m.Name == "certificate" && m.MountPath == "/etc/pipeguard/certificate"
			}) ||
			!slices.ContainsFunc(volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == name+"-cert" }) {
			t.Errorf("%s: the webhook does not use it: %q", rendering, c.Args)
		}
	}
}

// helm test trusts what API servers trust, and cannot be pointed at anything else.
func TestTheTestAsksThroughTheService(t *testing.T) {
	for rendering, all := range renderings(t) {
		name := fullname(rendering) + "-webhook"
		pod := decode[corev1.Pod](t, one(t, all, "Pod", name+"-test"))
		want := []string{"probe", "--url=https://" + name + "." + namespace + ".svc/validate", "--ca-file=/ca/ca.crt"}
		if !slices.Equal(pod.Spec.Containers[0].Args, want) {
			t.Errorf("%s: arguments %q, want %q", rendering, pod.Spec.Containers[0].Args, want)
		}
		v := pod.Spec.Volumes[0].Secret
		if v == nil || v.SecretName != name+"-cert" || len(v.Items) != 1 || v.Items[0].Key != "ca.crt" {
			t.Errorf("%s: it trusts %+v", rendering, v)
		}
		service := decode[corev1.Service](t, one(t, all, "Service", name))
		isServed := true
		for key, value := range service.Spec.Selector {
			isServed = isServed && pod.Labels[key] == value
		}
		if isServed {
			t.Errorf("%s: the Service leads to the test's own pod", rendering)
		}
		if pod.Annotations["helm.sh/hook"] != "test" {
			t.Errorf("%s: the test runs at any time", rendering)
		}
	}
}
