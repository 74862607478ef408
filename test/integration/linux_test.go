//go:build !windows

package integration

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/integration/cluster"
	"github.com/pipeguard/pipeguard/test/routes"
)

func linuxTerm() corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "pool", Operator: corev1.NodeSelectorOpExists},
		{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}},
	}}
}

// placements are the ways in which a pod is proven to run on Linux.
func placements() map[string]func(*corev1.PodSpec) {
	return map[string]func(*corev1.PodSpec){
		"os":           func(s *corev1.PodSpec) { s.OS = &corev1.PodOS{Name: corev1.Linux} },
		"nodeSelector": func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{corev1.LabelOSStable: "linux"} },
		"affinity": func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{linuxTerm(), {MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"darwin", "windows"}},
				}}},
			}}}
		},
	}
}

// Each object has a guarded pipe, so the webhook refuses those that may run on Windows, and the API server sends these and no others.
func TestTheAPIServerAndTheWebhookKnowTheSamePodsOfLinux(t *testing.T) {
	const samples = 400
	recorder, r := recorded(t), reviewer(t)
	c := newCorpus(t, namespace(t, "corpus"), 20261128)
	kinds := append(routes.Workloads(), bare())
	var all []client.Object
	for range samples {
		made := template("", pipe)
		c.place(&made.Spec)
		o := named(kinds[c.IntN(len(kinds))].Make(made), c.namespace)
		err := at(t).api.Client.Create(t.Context(), o, client.DryRunAll)
		if apierrors.IsInvalid(err) {
			continue
		}
		if err != nil {
			t.Fatalf("%T: %v", o, err)
		}
		all = append(all, o)
	}
	seen, ofLinux := sent(recorder), 0
	for _, o := range all {
		res := judged(t, r, o)
		if isSent := seen[o.GetObjectKind().GroupVersionKind().Kind+"/"+o.GetName()]; isSent == res.Allowed {
			t.Errorf("sent %t, refused %t: %s", isSent, !res.Allowed, text(t, o))
		}
		ofLinux += count(res.Allowed)
	}
	if len(all) < samples*3/4 || ofLinux < len(all)/4 || ofLinux > len(all)*3/4 {
		t.Errorf("%d objects, %d of Linux: the test says little", len(all), ofLinux)
	}
}

func TestAPodOfLinuxIsNotConcerned(t *testing.T) {
	guarded(t)
	others := namespace(t, "others")
	admin, warned := warnings(t)
	for name, place := range placements() {
		for _, w := range append(routes.Workloads(), bare()) {
			made := template("", pipe, `C:\Windows`, "/", "/var/lib/kubelet")
			place(&made.Spec)
			if err := admin.Create(t.Context(), named(w.Make(made), others)); err != nil {
				t.Errorf("%s, %s: %v", w.Kind, name, err)
			}
		}
	}
	if len(warned.texts) > 0 {
		t.Errorf("warnings: %q", warned.texts)
	}
}

func TestATemplateThatIsNoLongerOfLinuxIsRefused(t *testing.T) {
	guarded(t)
	others := namespace(t, "others")
	for name, place := range placements() {
		for _, w := range routes.Workloads() {
			if w.Template == nil {
				continue // the API server refuses any change of it
			}
			made := template("", pipe)
			place(&made.Spec)
			o := named(w.Make(made), others)
			created(t, o)
			s := &w.Template(o).Spec
			s.OS, s.NodeSelector, s.Affinity = nil, nil, nil
			if err := at(t).api.Client.Update(t.Context(), o); err == nil {
				t.Errorf("%s, %s: it was stored", w.Kind, name)
			} else {
				refused(t, err, "PG001")
			}
		}
	}
}

// away registers the webhook configuration of a chart with these values, and nobody answers.
func away(t *testing.T, values ...string) {
	t.Helper()
	r, err := cluster.StartRecorder(t)
	if err != nil {
		t.Fatal(err)
	}
	c, err := rendered(t, values...).Configuration(cluster.ObjectConfiguration, r.Port, r.CA)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(suspended(t))
	c.Name = "away"
	if err := at(t).api.Register(t.Context(), c, unanswered); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := at(t).api.Unregister(context.WithoutCancel(t.Context()), c); err != nil {
			t.Error(err)
		}
	})
}

// unanswered says that an object is not created because the webhook did not answer.
func unanswered(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}

// linuxShapes are the host paths of pods that keep nodes running:
//   - kube-proxy: https://github.com/kubernetes/kubernetes/blob/v1.37.2/cmd/kubeadm/app/phases/addons/proxy/manifests.go
//   - calico-node: https://github.com/projectcalico/calico/blob/master/manifests/calico.yaml
//   - kube-flannel: https://github.com/flannel-io/flannel/blob/master/Documentation/kube-flannel.yml
//   - a driver of CSI: https://github.com/kubernetes-sigs/azuredisk-csi-driver/tree/master/deploy
//   - node exporter: https://github.com/prometheus-community/helm-charts/tree/main/charts/prometheus-node-exporter
func linuxShapes() map[string][]string {
	return map[string][]string{
		"kube-proxy": {"/run/xtables.lock", "/lib/modules"},
		"calico-node": {
			"/lib/modules", "/var/run/calico", "/var/lib/calico", "/run/xtables.lock", "/sys/fs/", "/sys/fs/bpf", "/proc", "/opt/cni/bin", "/etc/cni/net.d",
			"/var/log/calico/cni", "/var/run/nodeagent",
		},
		"kube-flannel":  {"/run/flannel", "/opt/cni/bin", "/etc/cni/net.d", "/run/xtables.lock"},
		"a CSI driver":  {"/var/lib/kubelet/plugins/disk.csi.azure.com", "/var/lib/kubelet/", "/var/lib/kubelet/plugins_registry/", "/dev", "/sys/bus/scsi/devices", "/sys/class/"},
		"node exporter": {"/proc", "/sys", "/"},
	}
}

// windowsShapes are HostProcess pods, and pods with directories of Windows.
func windowsShapes() map[string]corev1.PodSpec {
	hostProcess := func(paths ...string) corev1.PodSpec {
		s := spec("", paths...)
		s.HostNetwork = true
		s.NodeSelector = map[string]string{corev1.LabelOSStable: "windows"}
		s.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true), RunAsUserName: new(`NT AUTHORITY\SYSTEM`)}}
		return s
	}
	return map[string]corev1.PodSpec{
		"kube-proxy":                   hostProcess(),
		"a CSI driver":                 hostProcess(`C:\var\lib\kubelet\plugins_registry\`, `C:\var\lib\kubelet\`, `C:\var\lib\kubelet\plugins\disk.csi.azure.com\`),
		"a CSI driver, by backslashes": hostProcess(`C:\\var\\lib\\kubelet`),
		"a directory of Windows":       spec("", `C:\Windows`),
		"a network plugin":             spec("", `c:/opt/cni/bin`, `C:\Program Files\containerd\cni`),
	}
}

func TestWithoutTheWebhookNodesStartAndNobodyGetsAPipe(t *testing.T) {
	away(t)
	space := namespace(t, "away")
	for name, paths := range linuxShapes() {
		created(t, pod(space, "", paths...))
		for _, w := range routes.Workloads() {
			if err := at(t).api.Client.Create(t.Context(), named(w.Make(template("", paths...)), space)); err != nil {
				t.Errorf("%s in a %s: %v", name, w.Kind, err)
			}
		}
	}
	for name, s := range windowsShapes() {
		if err := at(t).api.Client.Create(t.Context(), named(&corev1.Pod{Spec: s}, space)); err != nil {
			t.Errorf("%s of Windows: %v", name, err)
		}
	}
	v := volume(routes.Local(`C:\var\lib\kubelet`))
	deleted(t, v)
	created(t, v)
	subPath := func(path, subPath string) *corev1.Pod {
		p := pod(space, "", path)
		p.Spec.Containers[0].VolumeMounts[0].SubPath = subPath
		return p
	}
	driver := pod(space, "", pipe, `C:\var\lib\kubelet`)
	driver.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "windows"}
	for name, o := range map[string]client.Object{
		"a pipe":                           pod(space, "", pipe),
		"a driver":                         driver,
		"all pipes":                        pod(space, "", `\\.\pipe\`),
		"by the object manager's name":     pod(space, "", `/Device/NamedPipe/csi-proxy-disk-v1`),
		"by a subPath of the root":         subPath("/", "Device/NamedPipe/csi-proxy-disk-v1"),
		"by a subPath out of a directory":  subPath("/var/lib/kubelet", `..\..\..\Device\NamedPipe\csi-proxy-disk-v1`),
		"by a subPath out of a drive":      subPath(`C:\x`, `..\..\.\pipe\csi-proxy-disk-v1`),
		"a volume":                         volume(routes.Local(pipe)),
		"a volume of a root":               volume(routes.OnHost("/")),
		"a path that names no single pipe": pod(space, "", `C:\x\..\..\y`),
	} {
		if err := at(t).api.Client.Create(t.Context(), o); !unanswered(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWithoutTheWebhookWhatWouldBeRefusedIsNotCreated(t *testing.T) {
	away(t, "parameters.hostProcess=Deny", "parameters.hostPaths=Deny")
	space := namespace(t, "away")
	for name, paths := range linuxShapes() {
		for by, place := range placements() {
			p := pod(space, "", paths...)
			place(&p.Spec)
			if err := at(t).api.Client.Create(t.Context(), p); err != nil {
				t.Errorf("%s, %s: %v", name, by, err)
			}
		}
	}
	created(t, pod(space, "", linuxShapes()["kube-proxy"]...))
	for name, s := range windowsShapes() {
		if err := at(t).api.Client.Create(t.Context(), named(&corev1.Pod{Spec: s}, space)); !unanswered(err) {
			t.Errorf("%s of Windows: %v", name, err)
		}
	}
	if err := at(t).api.Client.Create(t.Context(), pod(space, "", "/opt/cni/bin")); !unanswered(err) {
		t.Errorf("a pod that may run on Windows: %v", err)
	}
}
