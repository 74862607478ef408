package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// holders are the kinds that hold a pod or make pods.
func holders() (out []metav1.GroupVersionKind) {
	for _, kind := range Kinds() {
		if kind.Kind != "PersistentVolume" {
			out = append(out, kind)
		}
	}
	return out
}

// asKind is a Pod, or an object of another kind that makes pods like it.
func asKind(t testing.TB, kind metav1.GroupVersionKind, p *corev1.Pod) []byte {
	t.Helper()
	if kind.Kind == "Pod" {
		return marshal(t, p)
	}
	return inTemplate(t, kind, p)
}

// at is a path within the pod or template of a kind.
func at(kind metav1.GroupVersionKind, field string) string {
	if kind.Kind == "Pod" {
		return field
	}
	return templatePaths[kind.Kind] + "." + field
}

func TestEveryKindThatMakesPodsIsJudgedAsThePodsAre(t *testing.T) {
	denying := allowing()
	denying.HostProcess, denying.EqualPower = ActionDeny, ActionDeny
	r := newReviewer(t, denying)
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		codes []string
		field string
	}{
		"a mount": {testPod(csiPipe), []string{"PG001"}, "spec.containers[0].volumeMounts[0]"},
		"an init container": {with(testPod(csiPipe), func(p *corev1.Pod) {
			p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, []corev1.Container{{Name: "main"}}
		}), []string{"PG001"}, "spec.initContainers[0].volumeMounts[0]"},
		"the second mount of the second container": {with(testPod(`C:\data`, csiPipe), func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "first"}, p.Spec.Containers[0]}
		}), []string{"PG001"}, "spec.containers[1].volumeMounts[1]"},
		"a volume that nobody mounts": {with(testPod(), func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{pipeVolume("v", csiPipe)}
		}), []string{"PG002"}, "spec.volumes[0].hostPath.path"},
		"the root of the pipes":   {in("kube-system", "csi-azuredisk-node-sa", testPod(`\\.\pipe\`)), []string{"PG003"}, "spec.containers[0].volumeMounts[0]"},
		"a pipe of a runtime":     {testPod(`\\.\pipe\containerd-containerd`), []string{"PG008"}, "spec.containers[0].volumeMounts[0]"},
		"another service account": {in("kube-system", "default", testPod(csiPipe)), []string{"PG001"}, "spec.containers[0].volumeMounts[0]"},
		"a HostProcess container": {with(testPod(), func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: hostProcess()}
		}), []string{"PG005"}, "spec.containers[0]"},
		"an annotation of a runtime":  {with(testPod(), func(p *corev1.Pod) { p.Annotations = map[string]string{"microsoft.com/hostprocess-container": "true"} }), []string{"PG006"}, "metadata.annotations[microsoft.com/hostprocess-container]"},
		"the driver":                  {in("kube-system", "csi-azuredisk-node-sa", testPod(csiPipe)), nil, ""},
		"a privileged container":      {with(testPod(csiPipe), privileged), []string{"PG004"}, ""},
		"nothing to decide":           {testPod(`C:\data`, "/var/log"), nil, ""},
		"nothing at all":              {testPod(), nil, ""},
		"a pipe that nobody looks at": {testPod(`\\.\pipe\printer`), nil, ""},
	} {
		for _, kind := range holders() {
			req := requestFor(t, asKind(t, kind, c.pod), nil)
			res := r.Review(t.Context(), req)
			if res.Allowed != (c.field == "") {
				t.Errorf("%s in a %s: allowed %t, %s", name, kind.Kind, res.Allowed, res.Message)
			}
			if diff := cmp.Diff(c.codes, res.Codes); diff != "" {
				t.Errorf("%s in a %s: codes (-want +got):\n%s", name, kind.Kind, diff)
			}
			if c.field != "" && (len(res.Causes) == 0 || res.Causes[0].Field != at(kind, c.field)) {
				t.Errorf("%s in a %s: causes %v, want the first to name %s", name, kind.Kind, res.Causes, at(kind, c.field))
			}
			if _, answer := post(t, r, reviewBody(t, req)); answer.Allowed != res.Allowed {
				t.Errorf("%s in a %s: the handler says %t, the review %t", name, kind.Kind, answer.Allowed, res.Allowed)
			}
		}
	}
}

// What stands on a Deployment itself is on none of its pods.
func TestAnAnnotationOfTheObjectIsNoneOfItsPods(t *testing.T) {
	p := DefaultParameters()
	p.HostProcess = ActionDeny
	r := newReviewer(t, p)
	for _, kind := range holders() {
		raw := strings.Replace(string(asKind(t, kind, testPod())), `"metadata":{`, `"metadata":{"annotations":{"microsoft.com/hostprocess-container":"true"},`, 1)
		if kind.Kind == "PodTemplate" { // its keys are in another order
			continue
		}
		if _, answer := post(t, r, reviewBody(t, requestFor(t, []byte(raw), nil))); answer.Allowed == (kind.Kind == "Pod") {
			t.Errorf("%s: allowed %t: %s", kind.Kind, answer.Allowed, raw)
		}
	}
}

func TestPersistentVolumesAreJudgedByTheirPath(t *testing.T) {
	denying := allowing()
	denying.EqualPower = ActionDeny
	r := newReviewer(t, denying)
	local := func(path string) *corev1.PersistentVolume {
		v := testVolume("")
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}}
		return v
	}
	both := testVolume(`C:\data`)
	both.Spec.Local = &corev1.LocalVolumeSource{Path: csiPipe}
	claimed := testVolume(csiPipe)
	claimed.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "kube-system", Name: "data"}
	csi := testVolume("")
	csi.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: "d", VolumeHandle: csiPipe, VolumeAttributes: map[string]string{"hostPath": csiPipe, "local": csiPipe}}}
	for name, c := range map[string]struct {
		volume *corev1.PersistentVolume
		codes  []string
		field  string
	}{
		"a host path":                     {testVolume(csiPipe), []string{"PG007"}, "spec.hostPath.path"},
		"a local path":                    {local(csiPipe), []string{"PG007"}, "spec.local.path"},
		"another spelling":                {local(`//./PIPE/CSI-Proxy-x`), []string{"PG007"}, "spec.local.path"},
		"both":                            {both, []string{"PG007"}, "spec.local.path"},
		"for a claim that may have pipes": {claimed, []string{"PG007"}, "spec.hostPath.path"},
		"the root of the pipes":           {testVolume(`\\.\pipe\`), []string{"PG003"}, "spec.hostPath.path"},
		"a disk":                          {local(`\\.\PhysicalDrive0`), []string{"PG008"}, "spec.local.path"},
		"the system's drive":              {testVolume(`C:\`), []string{"PG008"}, "spec.hostPath.path"},
		"the root":                        {testVolume(`/`), []string{"PG003"}, "spec.hostPath.path"},
		"the root with a backslash":       {local(`\`), []string{"PG003"}, "spec.local.path"},
		"the NT devices":                  {testVolume(`\Device`), []string{"PG003"}, "spec.hostPath.path"},
		"another share":                   {testVolume(`\\fs\data`), nil, ""},
		"another pipe":                    {testVolume(`\\.\pipe\printer`), nil, ""},
		"a directory":                     {local(`/mnt/disks/ssd0`), nil, ""},
		"a directory of Windows nodes":    {testVolume(`D:\data`), nil, ""},
		"another source":                  {csi, nil, ""},
	} {
		req := requestFor(t, marshal(t, c.volume), nil)
		res := r.Review(t.Context(), req)
		if res.Allowed != (c.field == "") {
			t.Errorf("%s: allowed %t, %s", name, res.Allowed, res.Message)
		}
		if diff := cmp.Diff(c.codes, res.Codes); diff != "" {
			t.Errorf("%s: codes (-want +got):\n%s", name, diff)
		}
		if c.field != "" && (len(res.Causes) == 0 || res.Causes[0].Field != c.field) {
			t.Errorf("%s: causes %v, want the first to name %s", name, res.Causes, c.field)
		}
		if _, answer := post(t, r, reviewBody(t, req)); answer.Allowed != res.Allowed {
			t.Errorf("%s: the handler says %t, the review %t", name, answer.Allowed, res.Allowed)
		}
	}
}

// The review of a pod that claims a volume does not see the volume's path, that of the volume sees no subPath.
func TestAPersistentVolumeIsRefusedWhereOneSubPathWouldBe(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	for _, path := range []string{`\`, `/`, `/.`, `\\.`, `\\.\`, `\\?\`, `\Device`, `/device/mup`, `/dosdevices`, `/GLOBAL??`, `\Sessions`, `/sessions/0`, `\Silos`, `\Device\WinDfs\Root\h`, `/data`, `/dev`, `/srv`, `C:\`, `D:\data`, `\\.\pipe\printer`, `\\fs\data`} {
		below := 0
		for _, subPath := range []string{`\.\pipe\csi-proxy-disk-v1`, `??\pipe\csi-proxy-disk-v1`, `pipe\csi-proxy-disk-v1`, `NamedPipe\csi-proxy-disk-v1`, `h/pipe/csi-proxy-disk-v1`, `DosDevices\x\pipe\y`, `0\DosDevices\x\pipe\y`} {
			inline := with(testPod(path), func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts[0].SubPath = subPath })
			if !r.Review(t.Context(), requestFor(t, marshal(t, inline), nil)).Allowed {
				below++
			}
		}
		res := r.Review(t.Context(), requestFor(t, marshal(t, testVolume(path)), nil))
		if res.Allowed != (below == 0) {
			t.Errorf("%s: allowed %t, and %d subPaths of it are refused: %s", path, res.Allowed, below, res.Message)
		}
	}
	res := r.Review(t.Context(), requestFor(t, marshal(t, testVolume(`/`)), nil))
	if want := `PG003: the volume leads to "/", which the subPath of a mount may make the path of a pipe: take a directory below it (spec.hostPath.path)`; !strings.Contains(res.Message, "\n"+want+"\n") {
		t.Errorf("%s\nhas no line\n%s", res.Message, want)
	}
}

// A review of a PersistentVolume has no namespace; one that claims to have one gains nothing by it.
func TestAPersistentVolumeIsInNoNamespace(t *testing.T) {
	p := DefaultParameters()
	p.AllowedNamespaces = map[string]Subjects{"kube-system": {}}
	r := newReviewer(t, p, func(o *ReviewerOptions) { o.Namespaces = labels{"kube-system": {"a": "b"}, "": {"c": "d"}} })
	req := requestFor(t, marshal(t, testVolume(csiPipe)), nil)
	req.Namespace = "kube-system"
	if res := r.Review(t.Context(), req); res.Allowed || strings.Contains(res.Message, "namespace") {
		t.Errorf("allowed %t, %s", res.Allowed, res.Message)
	}
}

func TestTheFirstSentenceOfADenialReadsWellForEveryKind(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	for kind, want := range map[string]string{
		"Pod":              `Pipeguard refuses Pod "demo" in namespace "team-a", service account "builder".`,
		"Deployment":       `Pipeguard refuses Deployment "demo" in namespace "team-a", service account "builder".`,
		"CronJob":          `Pipeguard refuses CronJob "demo" in namespace "team-a", service account "builder".`,
		"PersistentVolume": `Pipeguard refuses PersistentVolume "data".`,
	} {
		raw := marshal(t, testVolume(csiPipe))
		for _, k := range holders() {
			if k.Kind == kind {
				raw = asKind(t, k, testPod(csiPipe))
			}
		}
		res := r.Review(t.Context(), requestFor(t, raw, nil))
		if first, _, _ := strings.Cut(res.Message, "\n"); first != want {
			t.Errorf("%s: %s", kind, first)
		}
	}
	claimed := testVolume(csiPipe)
	claimed.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data"}
	res := r.Review(t.Context(), requestFor(t, marshal(t, claimed), nil))
	if want := `PG007: the volume leads to "` + csiPipe + `" and is for claim "data" of namespace "shop" (spec.hostPath.path)`; !strings.Contains(res.Message, "\n"+want+"\n") {
		t.Errorf("%s\nhas no line\n%s", res.Message, want)
	}
}
