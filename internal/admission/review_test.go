package admission

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/pipeguard/pipeguard/internal/turns"
	"github.com/pipeguard/pipeguard/test/pods"
)

// in puts a pod into a namespace under a service account.
func in(namespace, account string, p *corev1.Pod) *corev1.Pod {
	p.Namespace, p.Spec.ServiceAccountName = namespace, account
	return p
}

// with changes a pod.
func with(p *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	change(p)
	return p
}

func privileged(p *corev1.Pod) {
	p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
}

func hostProcess() *corev1.WindowsSecurityContextOptions {
	return &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}
}

func pipeVolume(name, path string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}
}

func TestReviewJudgesPods(t *testing.T) {
	denyHostProcess := DefaultParameters()
	denyHostProcess.HostProcess = ActionDeny
	denyEqualPower := DefaultParameters()
	denyEqualPower.EqualPower = ActionDeny
	allowingDenyEqualPower := allowing()
	allowingDenyEqualPower.EqualPower = ActionDeny
	for name, c := range map[string]struct {
		parameters Parameters
		pod        *corev1.Pod
		change     func(*admissionv1.AdmissionRequest)
		effect     Effect
		codes      []string
		field      string // of the first cause
	}{
		"a container that mounts a guarded pipe": {
			pod: testPod(csiPipe), effect: EffectDeny, codes: []string{"PG001"}, field: "spec.containers[0].volumeMounts[0]"},
		"the second of two mounts": {
			pod: testPod(`C:\data`, csiPipe), effect: EffectDeny, codes: []string{"PG001"}, field: "spec.containers[0].volumeMounts[1]"},
		"an init container": {
			pod: with(testPod(csiPipe), func(p *corev1.Pod) {
				p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, []corev1.Container{{Name: "main"}}
			}), effect: EffectDeny, codes: []string{"PG001"}, field: "spec.initContainers[0].volumeMounts[0]"},
		"an ephemeral container that is added by the subresource": {
			pod: with(testPod(csiPipe), func(p *corev1.Pod) {
				c := p.Spec.Containers[0]
				p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", VolumeMounts: c.VolumeMounts}}}
				p.Spec.Containers = []corev1.Container{{Name: "main"}}
			}),
			change: func(q *admissionv1.AdmissionRequest) {
				q.Operation, q.SubResource = admissionv1.Update, "ephemeralcontainers"
			},
			effect: EffectDeny, codes: []string{"PG001"}, field: "spec.ephemeralContainers[0].volumeMounts[0]"},
		"slashes, capitals and a doubled separator": {
			pod: testPod(`//.//PIPE/CSI-Proxy-Disk-v1`), effect: EffectDeny, codes: []string{"PG001"}, field: "spec.containers[0].volumeMounts[0]"},
		"a path through the directory above": {
			pod: testPod(`\\.\pipe\x\..\csi-proxy-disk-v1`), effect: EffectDeny, codes: []string{"PG003"}, field: "spec.containers[0].volumeMounts[0]"},
		"a subPath that completes the name": {
			pod: with(testPod(`\\.\pipe`), func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeMounts[0].SubPath = "csi-proxy-disk-v1"
			}), effect: EffectDeny, codes: []string{"PG003"}, field: "spec.containers[0].volumeMounts[0]"},
		"a subPathExpr below an ancestor": {
			pod: with(testPod(`\\.\`), func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeMounts[0].SubPathExpr = `pipe\$(NAME)`
			}), effect: EffectDeny, codes: []string{"PG003"}, field: "spec.containers[0].volumeMounts[0]"},
		"a subPathExpr that names a pipe without its variables": {
			pod: with(testPod(`/`), func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeMounts[0].SubPathExpr = `\.\pipe\csi-proxy-$(NAME)`
			}), effect: EffectDeny, codes: []string{"PG003"}, field: "spec.containers[0].volumeMounts[0]"},
		"a subPathExpr whose variable holds all of the pipe's path": {
			pod: with(testPod(`\`), func(p *corev1.Pod) {
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", Value: `\.\pipe\csi-proxy-disk-v1`}}
				p.Spec.Containers[0].VolumeMounts[0].SubPathExpr = `$(X)`
			}), effect: EffectDeny, codes: []string{"PG003"}, field: "spec.containers[0].volumeMounts[0]"},
		"a subPathExpr whose variable follows the root with slashes": {
			pod: with(testPod(`/`), func(p *corev1.Pod) {
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", Value: `\.\pipe\csi-proxy-disk-v1`}}
				p.Spec.Containers[0].VolumeMounts[0].SubPathExpr = `$(X)`
			}), effect: EffectDeny, codes: []string{"PG003"}, field: "spec.containers[0].volumeMounts[0]"},
		"a subPathExpr whose variable is the end of a device path": {
			pod: with(testPod(`\`), func(p *corev1.Pod) {
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", Value: `\.\pipe\csi-proxy-disk-v1`}}
				p.Spec.Containers[0].VolumeMounts[0].SubPathExpr = `\.\$(X)`
			}), effect: EffectDeny, codes: []string{"PG003"}, field: "spec.containers[0].volumeMounts[0]"},
		"a subPathExpr whose variable leaves another pipe": {
			pod: with(testPod(`\\.\pipe\a`), func(p *corev1.Pod) {
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", Value: `\.\pipe\csi-proxy-disk-v1`}}
				p.Spec.Containers[0].VolumeMounts[0].SubPathExpr = `$(X)`
			}), effect: EffectDeny, codes: []string{"PG003"}, field: "spec.containers[0].volumeMounts[0]"},
		"a subPathExpr without variables that leads from one guarded pipe to another": {
			parameters: allowing(),
			pod: in("kube-system", "csi-azuredisk-node-sa", with(testPod(csiPipe), func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeMounts[0].SubPathExpr = `..\csi-proxy-disk-v1`
			})), effect: EffectDeny, codes: []string{"PG003"}, field: "spec.containers[0].volumeMounts[0]"},
		"a subPathExpr below a directory of a drive": {
			pod: with(testPod(`C:\var\log`), func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeMounts[0].SubPathExpr = `$(NAME)`
			}), effect: EffectAllow},
		"a subPathExpr below a directory": {
			pod: with(testPod(`/var/log`), func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeMounts[0].SubPathExpr = `$(NAMESPACE)/$(NAME)`
			}), effect: EffectAllow},
		"a volume that nobody mounts": {
			pod:    with(testPod(), func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{pipeVolume("v", csiPipe)} }),
			effect: EffectDeny, codes: []string{"PG002"}, field: "spec.volumes[0].hostPath.path"},
		"a volume that nobody mounts beside a privileged container": {
			pod: with(testPod(), func(p *corev1.Pod) {
				privileged(p)
				p.Spec.Volumes = []corev1.Volume{pipeVolume("v", csiPipe)}
			}), effect: EffectDeny, codes: []string{"PG002"}, field: "spec.volumes[0].hostPath.path"},
		"two volumes of one name, the harmless one first": {
			pod: with(testPod(`C:\data`), func(p *corev1.Pod) {
				p.Spec.Volumes = append(p.Spec.Volumes, pipeVolume(p.Spec.Volumes[0].Name, csiPipe))
			}), effect: EffectDeny, codes: []string{"PG001"}, field: "spec.containers[0].volumeMounts[0]"},
		"two volumes of one name, the harmless one last": {
			pod: with(testPod(csiPipe), func(p *corev1.Pod) {
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: p.Spec.Volumes[0].Name})
			}), effect: EffectDeny, codes: []string{"PG001"}, field: "spec.containers[0].volumeMounts[0]"},
		"two containers of one name, the second guilty": {
			pod: with(testPod(csiPipe), func(p *corev1.Pod) {
				p.Spec.Containers = []corev1.Container{{Name: "app"}, p.Spec.Containers[0]}
			}), effect: EffectDeny, codes: []string{"PG001"}, field: "spec.containers[1].volumeMounts[0]"},
		"a namespace that the object claims to be in": {
			parameters: allowing(), pod: in("kube-system", "csi-azuredisk-node-sa", testPod(csiPipe)),
			change: func(q *admissionv1.AdmissionRequest) { q.Namespace = "team-a" },
			effect: EffectDeny, codes: []string{"PG001"}, field: "spec.containers[0].volumeMounts[0]"},
		"another service account of an allowed namespace": {
			parameters: allowing(), pod: in("kube-system", "default", testPod(csiPipe)),
			effect: EffectDeny, codes: []string{"PG001"}, field: "spec.containers[0].volumeMounts[0]"},
		"the pipe root in an allowed namespace, privileged": {
			parameters: allowing(), pod: in("kube-system", "csi-azuredisk-node-sa", with(testPod(`\\.\pipe\`), privileged)),
			effect: EffectDeny, codes: []string{"PG003"}, field: "spec.containers[0].volumeMounts[0]"},
		"a HostProcess container where that is denied": {
			parameters: denyHostProcess,
			pod: with(testPod(), func(p *corev1.Pod) {
				p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{WindowsOptions: hostProcess()}
			}), effect: EffectDeny, codes: []string{"PG005"}, field: "spec.containers[0]"},
		"a HostProcess pod where that is denied": {
			parameters: denyHostProcess,
			pod: with(testPod(), func(p *corev1.Pod) {
				p.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: hostProcess()}
			}), effect: EffectDeny, codes: []string{"PG005"}, field: "spec.containers[0]"},
		"an annotation that makes a HostProcess container": {
			parameters: denyHostProcess,
			pod: with(testPod(), func(p *corev1.Pod) {
				p.Annotations = map[string]string{"microsoft.com/hostprocess-container": "true"}
			}), effect: EffectDeny, codes: []string{"PG006"}, field: "metadata.annotations[microsoft.com/hostprocess-container]"},

		"nothing to decide":         {pod: testPod(`C:\data`, "/var/log"), effect: EffectAllow},
		"a pipe that nobody guards": {pod: testPod(`\\.\pipe\printer`), effect: EffectAllow},
		"a pipe of equal power": {
			pod: testPod(`\\.\pipe\docker_engine`), effect: EffectAudit, codes: []string{"PG008"}},
		"a pipe of equal power where that is denied": {
			parameters: denyEqualPower,
			pod:        testPod(`\\.\pipe\docker_engine`), effect: EffectDeny, codes: []string{"PG008"}, field: "spec.containers[0].volumeMounts[0]"},
		"the system's directory where that is denied": {
			parameters: denyEqualPower,
			pod:        testPod(`/windows/system32`), effect: EffectDeny, codes: []string{"PG008"}, field: "spec.containers[0].volumeMounts[0]"},
		"a subPath that completes the path of the system's directory": {
			parameters: denyEqualPower,
			pod: with(testPod(`C:`), func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeMounts[0].SubPath = "Windows"
			}), effect: EffectDeny, codes: []string{"PG008"}, field: "spec.containers[0].volumeMounts[0]"},
		"a disk that nobody mounts where that is denied": {
			parameters: denyEqualPower,
			pod: with(testPod(), func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{pipeVolume("v", `\\.\PhysicalDrive0`)}
			}), effect: EffectDeny, codes: []string{"PG008"}, field: "spec.volumes[0].hostPath.path"},
		"a pipe of equal power in an allowed namespace where that is denied": {
			parameters: allowingDenyEqualPower,
			pod:        in("kube-system", "csi-azuredisk-node-sa", testPod(`\\.\pipe\docker_engine`)),
			effect:     EffectDeny, codes: []string{"PG008"}, field: "spec.containers[0].volumeMounts[0]"},
		"a subPath that leads from one guarded pipe to another": {
			parameters: allowing(),
			pod: in("kube-system", "csi-azuredisk-node-sa", with(testPod(csiPipe), func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeMounts[0].SubPath = `..\csi-proxy-disk-v1`
			})), effect: EffectDeny, codes: []string{"PG003"}, field: "spec.containers[0].volumeMounts[0]"},
		"the driver": {parameters: allowing(), pod: pods.Driver(t), effect: EffectAllow},
		"a privileged container": {
			pod: with(testPod(csiPipe), privileged), effect: EffectWarn, codes: []string{"PG004"}},
		"a HostProcess container by default": {
			pod: with(testPod(), func(p *corev1.Pod) {
				p.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: hostProcess()}
			}), effect: EffectAudit, codes: []string{"PG005"}},
		"a container that opts out of its pod's HostProcess": {
			parameters: denyHostProcess,
			pod: with(testPod(), func(p *corev1.Pod) {
				p.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: hostProcess()}
				p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(false)}}
			}), effect: EffectAllow},
	} {
		t.Run(name, func(t *testing.T) {
			if c.parameters.GuardedPipes == nil {
				c.parameters = DefaultParameters()
			}
			r := newReviewer(t, c.parameters)
			req := createRequest(t, c.pod)
			if c.change != nil {
				c.change(req)
			}
			res := r.Review(t.Context(), req)
			if res.Allowed != (c.effect != EffectDeny) || res.Effect != c.effect {
				t.Errorf("allowed %t with effect %s, want effect %s; %s", res.Allowed, res.Effect, c.effect, res.Message)
			}
			if diff := cmp.Diff(c.codes, res.Codes); diff != "" {
				t.Errorf("codes (-want +got):\n%s", diff)
			}
			if c.field != "" && (len(res.Causes) == 0 || res.Causes[0].Field != c.field) {
				t.Errorf("causes %v, want the first to name %s", res.Causes, c.field)
			}
			if _, answer := post(t, r, reviewBody(t, req)); answer.Allowed != res.Allowed {
				t.Errorf("the handler says %t, the review %t", answer.Allowed, res.Allowed)
			}
		})
	}
}

func TestAMountOfAVolumeThatIsNotDeclaredIsTheAPIServersBusiness(t *testing.T) {
	p := testPod()
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "missing", MountPath: csiPipe}}
	if res := newReviewer(t, DefaultParameters()).Review(t.Context(), createRequest(t, p)); !res.Allowed || res.DecisionID != "" {
		t.Errorf("allowed %t, decision %q", res.Allowed, res.DecisionID)
	}
}

func TestPoliciesThatReadTheObjectAreAskedAboutEveryObject(t *testing.T) {
	const rule = `package pipeguard.admission

# METADATA
# title: Every pod has an owner
# custom: {code: TEST1}
findings contains {"code": "TEST1", "effect": "deny", "field": "metadata.labels"} if {
	input.object.metadata.name == "demo"
	not input.object.metadata.labels.owner
}
`
	p := DefaultParameters()
	engine := newEngine(t, p, map[string]string{"owner.rego": rule})
	r := newReviewer(t, p, func(o *ReviewerOptions) { o.Engine = engine })
	bare := testPod()
	if _, answer := post(t, r, reviewBody(t, createRequest(t, bare))); answer.Allowed || !strings.Contains(answer.Result.Message, "TEST1") {
		t.Errorf("a pod without owner: %v", answer)
	}
	owned := with(testPod(), func(p *corev1.Pod) { p.Labels = map[string]string{"owner": "jane"} })
	if _, answer := post(t, r, reviewBody(t, createRequest(t, owned))); !answer.Allowed {
		t.Errorf("a pod with owner: %v", answer.Result)
	}
	// What the policy asks for is in no mount, so equal mounts alone must not let an update pass.
	res := r.Review(t.Context(), updateRequest(t, owned, bare))
	if res.Allowed {
		t.Error("an update that takes the owner away was admitted as unchanged")
	}
}

func TestNamespaceLabelsReachThePolicy(t *testing.T) {
	const rule = `package pipeguard.admission

# METADATA
# title: Sealed namespaces have no devices
# custom: {code: TEST2}
findings contains {"code": "TEST2", "effect": "deny"} if {
	input.namespaceLabels.sealed == "yes"
	count(input.mounts) > 0
}
`
	p := DefaultParameters()
	engine := newEngine(t, p, map[string]string{"sealed.rego": rule})
	r := newReviewer(t, p, func(o *ReviewerOptions) {
		o.Engine, o.Namespaces = engine, labels{"team-a": {"sealed": "yes"}}
	})
	for namespace, want := range map[string]bool{"team-a": false, "team-b": true} {
		pod := in(namespace, "default", testPod(`\\.\pipe\printer`))
		if res := r.Review(t.Context(), createRequest(t, pod)); res.Allowed != want {
			t.Errorf("%s: allowed %t, want %t", namespace, res.Allowed, want)
		}
	}
}

type labels map[string]map[string]string

func (l labels) Labels(namespace string) map[string]string { return l[namespace] }

func TestATenantIsAUserAndANamespace(t *testing.T) {
	for user, want := range map[string]turns.Sender{
		"eve":                                {"namespace shop", "user eve"},
		"system:serviceaccount:shop:builder": {"namespace shop", "user system:serviceaccount:shop:builder"},
		"system:serviceaccount:tekton:controller":                 {"namespace shop"},
		"system:serviceaccount:shop":                              {"namespace shop", "user system:serviceaccount:shop"},
		"system:serviceaccount:":                                  {"namespace shop"},
		"system:serviceaccount:kube-system:replicaset-controller": {"namespace shop"},
		"system:kube-controller-manager":                          {"namespace shop"},
	} {
		if got := senderOf(user, "shop"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", user, got, want)
		}
	}
	// A PersistentVolume has no namespace, so that the user alone tells who asks.
	if got, want := senderOf("system:serviceaccount:tekton:controller", ""), (turns.Sender{"namespace ", "user system:serviceaccount:tekton:controller"}); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
