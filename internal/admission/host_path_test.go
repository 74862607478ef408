package admission

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

const (
	kubeletDir = `C:\var\lib\kubelet`
	pluginsDir = kubeletDir + `\plugins`
)

// pathDriver is a policy whose subject may mount the plugins' directory, where guarded host paths and paths of equal power are denied.
func pathDriver(change ...func(*PipePolicy)) Policies {
	p := governedBy(change...)
	own := p.PipePolicies["storage"]
	own.Subjects[0].HostPaths = []string{pluginsDir, `C:\Windows\Temp`}
	p.PipePolicies["storage"] = own
	p.Parameters.HostPaths, p.Parameters.EqualPower = ActionDeny, ActionDeny
	return p
}

func TestASubjectMayMountItsHostPaths(t *testing.T) {
	mounting := func(path string, change ...func(*corev1.Pod)) *corev1.Pod {
		p := in("drivers", "node-sa", testPod(path))
		for _, c := range change {
			c(p)
		}
		return p
	}
	subPath := func(s string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts[0].SubPath = s }
	}
	subPathExpr := func(s string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts[0].SubPathExpr = s }
	}
	unmounted := func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts = nil }
	image := func(p *corev1.Pod) { p.Spec.Containers[0].Image = "docker.io/evil" }
	byImage := pathDriver(func(p *PipePolicy) { p.Subjects[0].Images = []string{"registry.example/driver:v1"} })
	beside := pathDriver()
	beside.PipePolicies["storage"].Subjects[0].HostPaths = nil
	beside.PipePolicies["a"] = PipePolicy{Subjects: []access.Subject{{Name: "host", Namespace: "drivers", ServiceAccounts: []string{"other"}, HostPaths: []string{`C:\`}}}}
	asHost := pathDriver()
	asHost.PipePolicies["storage"].Subjects[0].HostPaths = nil
	asHost.PipePolicies["storage"].Subjects[0].HostProcess = &access.HostProcess{RunAsUserNames: []string{system}}
	runsAs := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.HostNetwork = true
			p.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: hostProcess()}
			p.Spec.SecurityContext.WindowsOptions.RunAsUserName = &name
		}
	}
	denyAsHost := asHost
	denyAsHost.Parameters.HostProcess = ActionIgnore
	for name, c := range map[string]hostCase{
		"its path":                      {policies: pathDriver(), pod: mounting(pluginsDir), effect: EffectAllow},
		"a path in it":                  {policies: pathDriver(), pod: mounting("/var/lib/kubelet/plugins/x/"), effect: EffectAllow},
		"a subPath of it":               {policies: pathDriver(), pod: mounting(pluginsDir, subPath(`x\csi.sock`)), effect: EffectAllow},
		"a path of equal power":         {policies: pathDriver(), pod: mounting(`c:\windows\TEMP\x`), effect: EffectAllow},
		"a volume that nobody mounts":   {policies: pathDriver(), pod: mounting(pluginsDir, unmounted), effect: EffectAllow},
		"until soon":                    {policies: pathDriver(until(clock.Add(time.Second))), pod: mounting(pluginsDir), effect: EffectWarn, code: "PG009"},
		"a HostProcess container":       {policies: asHost, pod: mounting(`C:\`, runsAs(system)), effect: EffectAllow},
		"a HostProcess container's pki": {policies: asHost, pod: mounting(kubeletDir+`\pki`, runsAs(system)), effect: EffectAllow},

		"its end":                   {policies: pathDriver(until(clock)), pod: mounting(pluginsDir), effect: EffectDeny, code: "PG011", text: `subject "node" of PipePolicy "storage" ended `},
		"another path":              {policies: pathDriver(), pod: mounting(kubeletDir + `\pki`), effect: EffectDeny, code: "PG011", text: `"C:\var\lib\kubelet\pki", beneath guarded host path "C:\var\lib\kubelet" (`},
		"what it is in":             {policies: pathDriver(), pod: mounting(`C:\var\lib`), effect: EffectDeny, code: "PG011", text: `above guarded host path "C:\var\lib\kubelet"`},
		"the guarded path":          {policies: pathDriver(), pod: mounting(kubeletDir), effect: EffectDeny, code: "PG011", text: `a guarded host path (`},
		"what it is in, by subPath": {policies: pathDriver(), pod: mounting(kubeletDir, subPath("plugins")), effect: EffectDeny, code: "PG011", text: `nearest is subject "node" of PipePolicy "storage": hostPath: want "C:\var\lib\kubelet\plugins" or "C:\Windows\Temp"`},
		"out of it":                 {policies: pathDriver(), pod: mounting(pluginsDir, subPath(`..\pki`)), effect: EffectDeny, code: "PG011"},
		"a variable":                {policies: pathDriver(), pod: mounting(pluginsDir, subPathExpr("$(X)")), effect: EffectDeny, code: "PG011"},
		"a short name":              {policies: pathDriver(), pod: mounting(kubeletDir + `\PLUGIN~1`), effect: EffectDeny, code: "PG011"},
		"the drive":                 {policies: pathDriver(), pod: mounting(`C:\`), effect: EffectDeny, code: "PG008"},
		"a disk":                    {policies: pathDriver(), pod: mounting(`\\.\C:`), effect: EffectDeny, code: "PG008"},
		"a device's path":           {policies: pathDriver(), pod: mounting(`\\?\C:\var\lib\kubelet\plugins`), effect: EffectDeny, code: "PG011"},
		"another path of Windows":   {policies: pathDriver(), pod: mounting(`C:\Windows`), effect: EffectDeny, code: "PG008"},
		"another account":           {policies: pathDriver(), pod: in("drivers", "other", testPod(pluginsDir)), effect: EffectDeny, code: "PG011", text: `serviceAccount: want "node-sa"`},
		"another namespace":         {policies: pathDriver(), pod: in("team-a", "node-sa", testPod(pluginsDir)), effect: EffectDeny, code: "PG011"},
		"another image":             {policies: byImage, pod: mounting(pluginsDir, image), effect: EffectDeny, code: "PG011", text: `image: want "registry.example/driver:v1", is "docker.io/evil"`},
		"a subject of pipes alone":  {policies: beside, pod: mounting(pluginsDir), effect: EffectDeny, code: "PG011"},
		"another Windows account":   {policies: denyAsHost, pod: mounting(pluginsDir, runsAs("x")), effect: EffectDeny, code: "PG011", text: `it permits no host paths`},
		"no HostProcess container":  {policies: asHost, pod: mounting(pluginsDir), effect: EffectDeny, code: "PG011"},
	} {
		t.Run(name, func(t *testing.T) {
			c.check(t)
		})
	}
}

// The defaults refuse nobody for a host path, and say of every guarded one that it is one.
func TestHostPathsAreRecordedByDefault(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	for _, path := range []string{
		pluginsDir, kubeletDir + `\plugins_registry`, kubeletDir + `\pki`, kubeletDir + `\pods`, `C:\opt\cni\bin`, `C:\etc\cni\net.d`, `C:\Program Files\containerd`, `C:\ProgramData\ssh`,
		`C:\ProgramData\Pipeguard`, `C:\k`, `C:\Users\x`, `C:\var`, `/opt/cni/bin`,
	} {
		res := r.Review(t.Context(), requestFor(t, marshal(t, testPod(path)), nil))
		if !res.Allowed || res.Effect != EffectAudit || res.Code != "PG011" {
			t.Errorf("%s: allowed %t, %s %s", path, res.Allowed, res.Effect, res.Code)
		}
	}
	for _, pipe := range []string{"svcctl", "ntsvcs", "atsvc", "winreg", "lsass", "samr"} {
		if res := r.Review(t.Context(), requestFor(t, marshal(t, testPod(`\\.\pipe\`+pipe)), nil)); res.Effect != EffectAudit || res.Code != "PG008" {
			t.Errorf("%s: %s %s", pipe, res.Effect, res.Code)
		}
	}
}

func TestAPersistentVolumeOfAGuardedHostPathIsNobodys(t *testing.T) {
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = newPolicyEngine(t, pathDriver(), nil) })
	res := r.Review(t.Context(), requestFor(t, []byte(`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"v"},"spec":{"local":{"path":"C:/var/lib/kubelet/plugins"}}}`), nil))
	if res.Allowed || res.Code != "PG011" {
		t.Errorf("allowed %t, %s", res.Allowed, res.Message)
	}
}

// A reader is told of the pipe first, however many HostProcess containers stand before it.
func TestHostProcessContainersHideNoPipe(t *testing.T) {
	p := pathDriver()
	p.Parameters.HostProcess = ActionDeny
	pod := in("team-a", "other", testPod(csiPipe))
	pod.Spec.HostNetwork, pod.Spec.SecurityContext = true, &corev1.PodSecurityContext{WindowsOptions: hostProcess()}
	for i := range 30 {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: "i" + strings.Repeat("x", i), Image: "example.com/i:1"})
	}
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = newPolicyEngine(t, p, nil) })
	res := r.Review(t.Context(), requestFor(t, marshal(t, pod), nil))
	if !strings.Contains(res.Message, "csi-proxy-filesystem-v1") {
		t.Errorf("%s: %s", res.Code, res.Message)
	}
}
