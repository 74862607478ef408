package admission

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/test/pods"
)

// servedBy answers for what is missing: pipes of the empty name anywhere, others on the node of that name.
type servedBy map[string][]string

func (s servedBy) Missing(pipe, node string) bool { return slices.Contains(s[node], pipe) }

func withPipes(s ServedPipes) func(*ReviewerOptions) {
	return func(o *ReviewerOptions) { o.Pipes = s }
}

func TestAPipeThatNoNodeServesIsWarnedAbout(t *testing.T) {
	const disk, volume = "csi-proxy-disk-v1", "csi-proxy-volume-v1"
	const anywhere = `Pipeguard: no node that reports serves pipe "csi-proxy-disk-v1": kubectl get guardednodes -o wide`
	const onNode = `Pipeguard: pipe "csi-proxy-disk-v1" is not served on node "win-1": kubectl get guardednodes -o wide`
	deployment := metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	bound := func(t *testing.T) *corev1.Pod {
		p := pods.Driver(t)
		p.Spec.NodeName = "win-1"
		return p
	}
	for name, c := range map[string]struct {
		missing servedBy
		request func(t *testing.T) *admissionv1.AdmissionRequest
		want    []string
	}{
		"a pod": {servedBy{"": {disk}}, func(t *testing.T) *admissionv1.AdmissionRequest { return createRequest(t, pods.Driver(t)) }, []string{anywhere}},
		"all pipes are served": {servedBy{"win-1": {disk}}, func(t *testing.T) *admissionv1.AdmissionRequest {
			return createRequest(t, pods.Driver(t))
		}, nil},
		"a pipe that the pod does not mount": {servedBy{"": {"csi-proxy-smb-v1"}}, func(t *testing.T) *admissionv1.AdmissionRequest {
			return createRequest(t, pods.Driver(t))
		}, nil},
		"two mounts of it": {servedBy{"": {disk}}, func(t *testing.T) *admissionv1.AdmissionRequest {
			p := pods.Driver(t)
			p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "csi-proxy-disk-v1", MountPath: `\\.\pipe\x`})
			return createRequest(t, p)
		}, []string{anywhere}},
		"a volume that nothing mounts": {servedBy{"": {disk}}, func(t *testing.T) *admissionv1.AdmissionRequest {
			p := pods.Driver(t)
			mounts := &p.Spec.Containers[0].VolumeMounts
			*mounts = slices.DeleteFunc(*mounts, func(m corev1.VolumeMount) bool { return m.Name == "csi-proxy-disk-v1" })
			return createRequest(t, p)
		}, nil},
		"in another spelling": {servedBy{"": {disk}}, func(t *testing.T) *admissionv1.AdmissionRequest {
			p := pods.Driver(t)
			for _, v := range p.Spec.Volumes {
				if v.Name == "csi-proxy-disk-v1" {
					v.HostPath.Path = `//?/GLOBALROOT/Device/NamedPipe/CSI-Proxy-Disk-V1`
				}
			}
			return createRequest(t, p)
		}, []string{anywhere}},
		"on a node that serves it": {servedBy{"": {disk}}, func(t *testing.T) *admissionv1.AdmissionRequest { return createRequest(t, bound(t)) }, nil},
		"on a node that does not":  {servedBy{"win-1": {disk}}, func(t *testing.T) *admissionv1.AdmissionRequest { return createRequest(t, bound(t)) }, []string{onNode}},
		"a template": {servedBy{"": {disk}}, func(t *testing.T) *admissionv1.AdmissionRequest {
			return requestFor(t, inTemplate(t, deployment, pods.Driver(t)), nil)
		}, []string{anywhere}},
		"the update of a template": {servedBy{"": {disk}}, func(t *testing.T) *admissionv1.AdmissionRequest {
			raw := inTemplate(t, deployment, pods.Driver(t))
			return requestFor(t, raw, raw)
		}, []string{anywhere}},
		"the update of a pod": {servedBy{"": {disk}}, func(t *testing.T) *admissionv1.AdmissionRequest {
			return updateRequest(t, pods.Driver(t), pods.Driver(t))
		}, nil},
		"a pod of Linux": {servedBy{"": {disk}}, func(t *testing.T) *admissionv1.AdmissionRequest {
			p := pods.Driver(t)
			p.Spec.OS = &corev1.PodOS{Name: corev1.Linux}
			return createRequest(t, p)
		}, nil},
		"all pipes": {servedBy{"": {
			disk, volume, "csi-proxy-filesystem-v1", "csi-proxy-filesystem-v1beta1", "csi-proxy-disk-v1beta2", "csi-proxy-volume-v1beta2",
		}}, func(t *testing.T) *admissionv1.AdmissionRequest { return createRequest(t, pods.Driver(t)) }, []string{
			`Pipeguard: no node that reports serves pipe "csi-proxy-filesystem-v1": kubectl get guardednodes -o wide`, anywhere,
			`Pipeguard: no node that reports serves pipe "csi-proxy-volume-v1": kubectl get guardednodes -o wide`,
			`Pipeguard: no node that reports serves pipe "csi-proxy-filesystem-v1beta1": kubectl get guardednodes -o wide`,
			`Pipeguard: no node that reports serves pipe "csi-proxy-disk-v1beta2": kubectl get guardednodes -o wide`,
			"Pipeguard: 1 more warnings",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var with, without ledger
			request := c.request(t)
			body := reviewBody(t, request)
			_, got := post(t, newReviewer(t, allowing(), withPipes(c.missing), func(o *ReviewerOptions) { o.Audit = &with }), body)
			if !got.Allowed {
				t.Fatalf("refused: %s", got.Result.Message)
			}
			if diff := cmp.Diff(c.want, got.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			// Neither the rest of the answer nor the record depends on what nodes report.
			_, plain := post(t, newReviewer(t, allowing(), func(o *ReviewerOptions) { o.Audit = &without }), body)
			got.Warnings = plain.Warnings
			if diff := cmp.Diff(plain, got); diff != "" {
				t.Errorf("answer (-without +with):\n%s", diff)
			}
			if diff := cmp.Diff(without.events, with.events); diff != "" || len(with.events) > 1 {
				t.Errorf("record (-without +with):\n%s", diff)
			}
		})
	}
}

func TestARefusalHasNoWarningAboutPipes(t *testing.T) {
	p := pods.Driver(t)
	p.Namespace = "shop"
	_, got := post(t, newReviewer(t, allowing(), withPipes(servedBy{"": {"csi-proxy-disk-v1"}})), reviewBody(t, createRequest(t, p)))
	if got.Allowed || len(got.Warnings) > 0 {
		t.Errorf("allowed %t, warnings %q", got.Allowed, got.Warnings)
	}
}

func TestWarningsAboutPipesArePlainAndShort(t *testing.T) {
	long := "csi-proxy-" + strings.Repeat("x", 53)
	for _, node := range []string{"", strings.Repeat("n", 253), "win-1\n\x1b[2Jall is well", "\u202ewin", strings.Repeat("\u00e4", 99)} {
		p := testPod(`\\.\pipe\` + long)
		p.Namespace, p.Spec.NodeName, p.Spec.ServiceAccountName = "kube-system", node, "csi-azuredisk-node-sa"
		res := newReviewer(t, allowing(), withPipes(servedBy{node: {long}})).Review(t.Context(), createRequest(t, p))
		if len(res.Warnings) != 1 || len(res.Warnings[0]) > maxWarningLen || !isPlain(res.Warnings[0], "") || !strings.HasSuffix(res.Warnings[0], showServed) {
			t.Errorf("%q: warnings %q", node, res.Warnings)
		}
	}
}
