//go:build !windows

package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// inside are the ways a pod can give a pipe to somebody.
func inside() map[string]struct {
	change func(*corev1.PodSpec)
	code   string
	field  string
} {
	return map[string]struct {
		change func(*corev1.PodSpec)
		code   string
		field  string
	}{
		"a container": {func(*corev1.PodSpec) {}, "PG001", "spec.containers[0].volumeMounts[0]"},
		"the second container": {func(s *corev1.PodSpec) {
			s.Containers = append([]corev1.Container{{Name: "first", Image: image}}, s.Containers...)
		}, "PG001", "spec.containers[1].volumeMounts[0]"},
		"an init container": {func(s *corev1.PodSpec) {
			s.InitContainers, s.Containers = s.Containers, []corev1.Container{{Name: "main", Image: image}}
		}, "PG001", "spec.initContainers[0].volumeMounts[0]"},
		"a sidecar": {func(s *corev1.PodSpec) {
			s.InitContainers, s.Containers = s.Containers, []corev1.Container{{Name: "main", Image: image}}
			s.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}, "PG001", "spec.initContainers[0].volumeMounts[0]"},
		"a volume that nobody mounts": {func(s *corev1.PodSpec) { s.Containers[0].VolumeMounts = nil },
			"PG002", "spec.volumes[0].hostPath.path"},
		"a volume with a type and a mount that is read only": {func(s *corev1.PodSpec) {
			s.Volumes[0].HostPath.Type = new(corev1.HostPathUnset)
			s.Containers[0].VolumeMounts[0].ReadOnly = true
		}, "PG001", "spec.containers[0].volumeMounts[0]"},
		"a pod that says it is for Windows": {func(s *corev1.PodSpec) { s.OS = &corev1.PodOS{Name: corev1.Windows} },
			"PG001", "spec.containers[0].volumeMounts[0]"},
		"a pod that would rather be on Linux": {func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
				{Weight: 100, Preference: linuxTerm()},
			}}}
		}, "PG001", "spec.containers[0].volumeMounts[0]"},
	}
}

func TestAPodMayHaveAPipeOnlyAsTheDriver(t *testing.T) {
	guarded(t)
	others := namespace(t, "others", driver)
	for name, c := range inside() {
		t.Run(name, func(t *testing.T) {
			for _, who := range []struct{ namespace, account string }{{others, driver}, {others, ""}, {drivers, ""}} {
				p := pod(who.namespace, who.account, pipe)
				c.change(&p.Spec)
				status := refused(t, at(t).api.Client.Create(t.Context(), p), c.code)
				if diff := cmp.Diff([]string{c.code + " " + c.field}, causes(status)); diff != "" {
					t.Errorf("causes (-want +got):\n%s", diff)
				}
			}
			p := pod(drivers, driver, pipe)
			c.change(&p.Spec)
			created(t, p)
		})
	}
}

func TestEverySpellingOfAPipeIsRefused(t *testing.T) {
	guarded(t)
	others := namespace(t, "others")
	for name, c := range map[string]struct {
		path, subPath string
		code          string
		nobody        bool // not even the driver
	}{
		"slashes and capitals":       {`//.//PIPE/CSI-Proxy-Disk-v1`, "", "PG001", false},
		"a share of this machine":    {`\\localhost\pipe\csi-proxy-disk-v1`, "", "PG001", false},
		"the object manager's name":  {`\\?\GLOBALROOT\Device\NamedPipe\csi-proxy-disk-v1`, "", "PG001", false},
		"one leading separator":      {`/Device/NamedPipe/csi-proxy-disk-v1`, "", "PG001", false},
		"the rest in subPath":        {`\\.\pipe`, "csi-proxy-disk-v1", "PG003", true},
		"everything in subPath":      {`/`, `\.\pipe\csi-proxy-disk-v1`, "PG001", false},
		"all pipes":                  {`\\.\pipe\`, "", "PG003", true},
		"a way up":                   {`\\.\pipe\x\..\csi-proxy-disk-v1`, "", "PG003", true},
		"the root of device names":   {`\\?\GLOBALROOT`, "", "PG003", true},
		"a share without a name":     {`\\localhost`, "", "PG003", true},
		"a Kelvin sign for a letter": {"\\\\.\\pipe\\csi-proxy-dis\u212A-v1", "", "PG001", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod(others, "", c.path)
			p.Spec.Containers[0].VolumeMounts[0].SubPath = c.subPath
			refused(t, at(t).api.Client.Create(t.Context(), p), c.code)
			p = pod(drivers, driver, c.path)
			p.Spec.Containers[0].VolumeMounts[0].SubPath = c.subPath
			if err := at(t).api.Client.Create(t.Context(), p); c.nobody {
				refused(t, err, c.code)
			} else if err != nil {
				t.Errorf("the driver: %v", err)
			}
		})
	}
}

func TestOrdinaryPodsAreNotDisturbed(t *testing.T) {
	webhook := guarded(t)
	others := namespace(t, "others")
	admin, warned := warnings(t)
	linux := pod(others, "", "/opt/cni/bin", "/")
	linux.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "linux"}
	for _, p := range []*corev1.Pod{linux, pod(others, ""), pod(others, "", "/var/log", "/opt/data"), pod(others, "", `C:\data`), pod(others, "", `\\server\share`)} {
		if err := admin.Create(t.Context(), p); err != nil {
			t.Error(err)
		}
	}
	if len(warned.texts) != 0 {
		t.Errorf("warnings: %q", warned.texts)
	}
	for _, r := range recordsOf(t, webhook, others, 0) {
		if r.Decision.Rule != "" {
			t.Errorf("%s is recorded as %+v", r.Who.Pod.Name, r.Decision)
		}
	}
}
