package chart_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const (
	nodeNamespace = "pipeguard-node"
	sandbox       = "%CONTAINER_SANDBOX_MOUNT_POINT%"
)

// nodeNamespaces are where renderings with the node component have it.
var nodeNamespaces = map[string]string{"nodes": namespace, "nodes elsewhere": nodeNamespace, "everything": "guard-nodes"}

func isOfNode(o object) bool {
	return o.at("metadata", "labels", "app.kubernetes.io/component") == "node"
}

// nodes returns the DaemonSet of each rendering that has one.
func nodes(t *testing.T) map[string]appsv1.DaemonSet {
	t.Helper()
	all, rendered := map[string]appsv1.DaemonSet{}, renderings(t)
	for rendering := range nodeNamespaces {
		all[rendering] = decode[appsv1.DaemonSet](t, one(t, rendered[rendering], "DaemonSet", fullname(rendering)+"-node"))
	}
	return all
}

func TestWithoutTheValueThereIsNoNodeComponent(t *testing.T) {
	for rendering, all := range renderings(t) {
		if nodeNamespaces[rendering] != "" {
			continue
		}
		if i := slices.IndexFunc(all, isOfNode); i >= 0 {
			t.Errorf("%s: %s", rendering, all[i].id())
		}
	}
}

// What the API server and the kubelet ask of a HostProcess pod.
// https://kubernetes.io/docs/tasks/configure-pod-container/create-hostprocess-pod/
func TestTheNodesPodsAreHostProcessContainersOfSystem(t *testing.T) {
	for rendering, d := range nodes(t) {
		spec := d.Spec.Template.Spec
		w := spec.SecurityContext.WindowsOptions
		if w == nil || w.HostProcess == nil || !*w.HostProcess || w.RunAsUserName == nil || *w.RunAsUserName != `NT AUTHORITY\SYSTEM` {
			t.Errorf("%s: the Windows options are %+v", rendering, w)
		}
		if !spec.HostNetwork || spec.OS == nil || spec.OS.Name != corev1.Windows {
			t.Errorf("%s: host network %t, system %v", rendering, spec.HostNetwork, spec.OS)
		}
		if spec.NodeSelector["kubernetes.io/os"] != "windows" || spec.NodeSelector["kubernetes.io/arch"] != "amd64" {
			t.Errorf("%s: the nodes are %v", rendering, spec.NodeSelector)
		}
		if len(spec.InitContainers) > 0 || len(spec.Containers) != 1 || spec.Containers[0].SecurityContext != nil {
			t.Errorf("%s: %d init containers, %d containers", rendering, len(spec.InitContainers), len(spec.Containers))
		}
		for key := range d.Spec.Template.Annotations {
			if strings.Contains(strings.ToLower(key), "microsoft.com") {
				t.Errorf("%s: the annotation %s gives more of the host", rendering, key)
			}
		}
	}
}

// It holds its node already; the node's directories would be more than it needs.
func TestTheNodesPodsMountNothingOfTheirNodeAndOneToken(t *testing.T) {
	for rendering, d := range nodes(t) {
		spec := d.Spec.Template.Spec
		if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
			t.Errorf("%s: a token is mounted where every program looks for it", rendering)
		}
		account := decode[corev1.ServiceAccount](t, one(t, renderings(t)[rendering], "ServiceAccount", spec.ServiceAccountName))
		if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken || account.Namespace != d.Namespace {
			t.Errorf("%s: the account is %+v", rendering, account)
		}
		if v := spec.Volumes; len(v) != 2 || v[0].ConfigMap == nil || v[0].ConfigMap.Name != d.Name || v[1].Projected == nil {
			t.Errorf("%s: the volumes are %+v", rendering, spec.Volumes)
		}
	}
}

func TestTheNodesPodInstallsTheServiceAndFollows(t *testing.T) {
	all := nodes(t)
	for rendering, want := range map[string][]string{
		"nodes": {
			"install", "--name", "csiproxy", "--follow", "--health-address", "127.0.0.1:9188", "--config-from", sandbox + `\pipeguard\config\proxy.yaml`,
			"--identity-from", sandbox + `\pipeguard\credentials`,
			"--kubelet-certificate", `C:\var\lib\kubelet\pki\kubelet-server-current.pem`, "--kubelet-certificate", `C:\var\lib\kubelet\pki\kubelet.crt`,
			"--report-as", "$(NODE_NAME)", "--report-credentials", sandbox + `\pipeguard\credentials`, "--",
			`-kubelet-path=C:\var\lib\kubelet`, "-node-name=$(NODE_NAME)", "-require-privacy=true", `-log_file=C:\ProgramData\Pipeguard\proxy.log`, "-logtostderr=false",
			"-metrics-bind-address=127.0.0.1:9189",
		},
		"everything": {
			"install", "--name", "guard", "--follow", "--replace", "csi-proxy", "--replace", "csiproxy", "--all-privileges",
			"--config-from", sandbox + `\pipeguard\config\proxy.yaml`,
			"--report-as", "$(NODE_NAME)", "--report-credentials", sandbox + `\pipeguard\credentials`, "--report-to", "https://api.example.com:6443", "--",
			`-kubelet-path=D:\k`, "-node-name=$(NODE_NAME)", `-working-dir=D:\a b`, `-working-dir=E:\c`, "-require-privacy=false", "-metrics-bind-address=[::]:9300", "-v=2",
		},
	} {
		c := all[rendering].Spec.Template.Spec.Containers[0]
		if diff := cmp.Diff(want, c.Args); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rendering, diff)
		}
		if diff := cmp.Diff([]string{sandbox + `\proxy.exe`}, c.Command); diff != "" {
			t.Errorf("%s: command (-want +got):\n%s", rendering, diff)
		}
		if m := c.VolumeMounts; len(m) != 2 || m[0].MountPath != "/pipeguard/config" || !m[0].ReadOnly || m[0].SubPath != "" {
			t.Errorf("%s: the mounts are %+v", rendering, m)
		}
	}
}

// The service is what counts, and only the installer knows whether it is the one of this release.
func TestANodeIsReadyWhenItsServiceRunsAsAsked(t *testing.T) {
	all := nodes(t)
	for rendering, d := range all {
		c := d.Spec.Template.Spec.Containers[0]
		if rendering == "everything" { // without a port
			probe := []string{sandbox + `\proxy.exe`, "status", "--name", "guard"}
			if c.ReadinessProbe.Exec == nil || !slices.Equal(c.ReadinessProbe.Exec.Command, probe) || c.LivenessProbe != nil {
				t.Errorf("%s: %+v, %+v", rendering, c.ReadinessProbe, c.LivenessProbe)
			}
			continue
		}
		for path, probe := range map[string]*corev1.Probe{"/readyz": c.ReadinessProbe, "/healthz": c.LivenessProbe} {
			if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Host != "127.0.0.1" || probe.HTTPGet.Port.IntValue() != 9188 {
				t.Errorf("%s: %s is asked by %+v", rendering, path, probe)
			}
		}
	}
}

// The runtime hands the command to cmd.exe, which gives these characters a meaning.
func TestNoArgumentMeansAnythingToAShell(t *testing.T) {
	for rendering, d := range nodes(t) {
		c := d.Spec.Template.Spec.Containers[0]
		commands := slices.Concat(c.Command, c.Args)
		if probe := c.ReadinessProbe.Exec; probe != nil {
			commands = append(commands, probe.Command...)
		}
		for _, arg := range commands {
			if strings.ContainsAny(strings.TrimPrefix(arg, sandbox), "\"&|<>^%!\n") {
				t.Errorf("%s: %q", rendering, arg)
			}
		}
	}
}

func TestARolloutStopsAtTheFirstNodeThatFails(t *testing.T) {
	all := nodes(t)
	for rendering, want := range map[string]string{"nodes": "1", "everything": "10%"} {
		s := all[rendering].Spec
		if s.UpdateStrategy.RollingUpdate == nil || s.UpdateStrategy.RollingUpdate.MaxUnavailable.String() != want || s.MinReadySeconds < 15 {
			t.Errorf("%s: %+v, ready after %d s", rendering, s.UpdateStrategy, s.MinReadySeconds)
		}
		if !cmp.Equal(s.Selector.MatchLabels, map[string]string{
			"app.kubernetes.io/name": "pipeguard", "app.kubernetes.io/instance": "pipeguard", "app.kubernetes.io/component": "node",
		}) {
			t.Errorf("%s: an upgrade cannot change the selector %v", rendering, s.Selector.MatchLabels)
		}
	}
	d := decode[appsv1.DaemonSet](t, one(t, render(t, set("node.enabled=true", "node.updateStrategy.type=OnDelete")...), "DaemonSet", "pipeguard-node"))
	if s := d.Spec.UpdateStrategy; s.Type != appsv1.OnDeleteDaemonSetStrategyType || s.RollingUpdate != nil {
		t.Errorf("OnDelete is %+v", s)
	}
}

func TestEveryWindowsNodeHasRoomForItsPod(t *testing.T) {
	all := nodes(t)
	if s := all["nodes"].Spec.Template.Spec; s.PriorityClassName != "system-node-critical" || !slices.Equal(s.Tolerations, []corev1.Toleration{{Operator: "Exists"}}) {
		t.Errorf("priority %q, tolerations %+v", s.PriorityClassName, s.Tolerations)
	}
	quota := decode[corev1.ResourceQuota](t, one(t, renderings(t)["nodes"], "ResourceQuota", "pipeguard-node"))
	if q := quota.Spec.Hard[corev1.ResourcePods]; q.Value() < 5000 {
		t.Errorf("the quota has room for %s pods", q.String())
	}
	for _, o := range render(t, set("node.enabled=true", "priorityClassName=system-node-critical")...) {
		if o.id() == "ResourceQuota/pipeguard-webhook" {
			t.Error("the webhook's quota of the same class limits the node component to 100 nodes")
		}
	}
}

func TestThePodMonitorFindsThePort(t *testing.T) {
	for rendering, port := range map[string]int32{"nodes elsewhere": 9187, "everything": 9300} {
		ports := nodes(t)[rendering].Spec.Template.Spec.Containers[0].Ports
		if len(ports) != 1 || ports[0].Name != "metrics" || ports[0].ContainerPort != port || ports[0].HostPort != port {
			t.Errorf("%s: the ports are %+v", rendering, ports)
		}
		monitor := one(t, renderings(t)[rendering], "PodMonitor", fullname(rendering)+"-node")
		if got := text(t, object(monitor.at("spec").(map[string]any))); !strings.Contains(got, "port: metrics") || !strings.Contains(got, "component: node") {
			t.Errorf("%s: %s", rendering, got)
		}
	}
	if ports := nodes(t)["nodes"].Spec.Template.Spec.Containers[0].Ports; len(ports) > 0 {
		t.Errorf("without an address: %+v", ports)
	}
	for _, address := range []string{"", "127.0.0.1:9187", "localhost:9187", "[::1]:9187"} {
		if _, err := template(t, set("node.enabled=true", "node.podMonitor.enabled=true", "node.metricsAddress="+address)...); err == nil {
			t.Errorf("Prometheus is told to read at %q", address)
		}
	}
}

func TestTheNodesImageIsThatOfTheRelease(t *testing.T) {
	for rendering, want := range map[string]string{
		"nodes":      "docker.io/pipeguard/node:0.1.0-dev",
		"everything": "registry.example.com:5000/pipeguard/node@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	} {
		if got := nodes(t)[rendering].Spec.Template.Spec.Containers[0].Image; got != want {
			t.Errorf("%s: %s, want %s", rendering, got, want)
		}
	}
}
