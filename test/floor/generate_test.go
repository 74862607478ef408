package floor

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	product "github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
)

// now is when every object is made.
var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// generator makes policies, and objects that come near to what they say: names are drawn from few, so that they meet.
type generator struct {
	*rand.Rand
	vectors []vector
}

type vector struct{ HostPath, SubPath string }

func newGenerator(t testing.TB, seed uint64) *generator {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "internal", "core", "pipepath", "testdata", "pipe-path-vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 16))}
	if err := json.Unmarshal(text, &g.vectors); err != nil || len(g.vectors) < 50 {
		t.Fatalf("%d vectors: %v", len(g.vectors), err)
	}
	return g
}

func pick[T any](g *generator, all ...T) T { return all[g.IntN(len(all))] }

// one says yes once in n times.
func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

// some are a few of all, none now and then, and each once.
func some(g *generator, most int, all ...string) []string {
	all = slices.Clone(all)
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:g.IntN(min(most, len(all))+1)]
}

var (
	namespaces = []string{"storage", "kube-system", "shop"}
	accounts   = []string{"driver", "default", "node"}
	names      = []string{"driver", "registrar", "probe"}
	pipes      = []string{"csi-proxy-disk-v1", "csi-proxy-volume-v1", "other.pipe", "docker_engine", "csi-proxy{x}", "a", "ProtectedPrefix", "LOCAL"}
	patterns   = []string{"csi-proxy*", "csi-proxy-disk-v1", "CSI-Proxy-Volume*", "other.pipe", "docker*", "a"}
	images     = []string{
		"registry.example/driver:v1", "registry.example/driver", "registry.example/driver@sha256:" + digest, "registry.example/driver:v1@sha256:" + digest, "registry.example:5000/team/driver:v1.2.3",
		"registry.example/driver:v1.2", "registry.example/driver-of-others:v1", "driver:v1", "sha256:" + digest, "registry.example/driver:", "registry.example//driver:v1", "registry.example/driver:-v1",
		"Registry.example/driver:v1", "registry.example/x/../driver", "registry.example/:v1", "",
	}
	imagePatterns = []string{
		"registry.example/*", "registry.example/driver*", "registry.example/driver:v1", "registry.example/driver:v1.*", "registry.example/driver@sha256:" + digest, "registry.example/driver:*", "registry.example:5000/*",
		"registry.example/driver@*", "driver:v1",
	}
	directories = []string{`C:\var\lib\kubelet`, `C:\Windows`, `C:\ProgramData`, `C:\Users\admin`, `D:\data`, `C:\Program Files`, `C:\`, `C:\opt\cni\bin`}
	users       = []string{`NT AUTHORITY\SYSTEM`, `nt authority\system`, `NT AUTHORITY\Local service`, `Über`}
)

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// policies are parameters and PipePolicies that are fit.
func (g *generator) policies() product.Policies {
	for {
		p := g.unchecked()
		if p.Validate() == nil {
			return p
		}
	}
}

func (g *generator) unchecked() product.Policies {
	action := func() product.Action {
		return pick(g, product.ActionDeny, product.ActionAudit, product.ActionWarn, product.ActionIgnore)
	}
	p := product.DefaultParameters()
	p.Requirement = pick(g, product.PrivilegedOrAllowedNamespace, product.AllowedNamespace, product.PrivilegedAndAllowedNamespace)
	p.HostProcess, p.EqualPower, p.HostPaths = action(), action(), action()
	p.Action = pick(g, product.ActionDeny, product.ActionDeny, product.ActionWarn, product.ActionAudit)
	if g.one(4) { // nothing else refuses either, but for PipePolicies
		p.EqualPower, p.HostPaths = product.ActionAudit, product.ActionAudit
	}
	if g.one(2) {
		p.GuardedPipes = append(some(g, 3, patterns...), "csi-proxy-volume-v1")
		p.GuardedHostPaths, p.EqualPowerPaths, p.EqualPowerPipes = some(g, 4, directories...), some(g, 3, directories...), some(g, 2, patterns...)
	}
	subjects := func() map[string]product.Subjects {
		out := map[string]product.Subjects{}
		for _, namespace := range some(g, 2, namespaces...) {
			out[namespace] = product.Subjects{ServiceAccounts: some(g, 2, accounts...)}
		}
		return out
	}
	p.AllowedNamespaces = subjects()
	for namespace, s := range subjects() {
		if len(s.ServiceAccounts) > 0 {
			p.HostProcessAllowed[namespace] = s
		}
	}
	all := product.Policies{Parameters: p, PipePolicies: map[string]product.PipePolicy{}}
	for _, name := range some(g, 4, "p1", "p2", "p3", "p4") {
		all.PipePolicies[name] = g.policy()
	}
	if g.one(3) {
		all.Parameters.PipePolicies["p1"] = g.policy()
	}
	return all
}

func (g *generator) policy() product.PipePolicy {
	p := product.PipePolicy{
		Pipes: some(g, 3, patterns...), Action: pick(g, product.ActionDeny, product.ActionDeny, product.ActionWarn, product.ActionAudit),
		Requirement: pick(g, product.AllowedNamespace, product.AllowedNamespace, product.PrivilegedAndAllowedNamespace, product.PrivilegedOrAllowedNamespace),
	}
	for _, name := range some(g, 4, "s1", "s2", "s3", "s4") {
		s := access.Subject{Name: name, Namespace: pick(g, namespaces...), ServiceAccounts: some(g, 2, accounts...), Containers: some(g, 2, names...), Images: some(g, 3, imagePatterns...)}
		if len(s.ServiceAccounts) > 0 && g.one(2) {
			s.HostProcess = &access.HostProcess{}
			if g.one(2) {
				s.HostProcess.RunAsUserNames = append(some(g, 1, users...), users[0])[:1]
			}
		}
		if len(s.ServiceAccounts) > 0 && g.one(2) {
			if s.HostPaths = some(g, 2, directories...); len(s.HostPaths) == 0 {
				s.HostPaths = nil
			}
		}
		if g.one(3) {
			s.Owner, s.Reason, s.ExpiresAt = "storage-team", "migration", now.Add(pick(g, time.Second, -time.Second, 0, time.Hour, -time.Hour, 30*24*time.Hour))
		}
		p.Subjects = append(p.Subjects, s)
	}
	return p
}

// path is a host path: one of a vector, a pipe, a directory or nonsense, perhaps with one thing changed.
func (g *generator) path() string {
	var path string
	switch g.IntN(8) {
	case 0:
		path = pick(g, g.vectors...).HostPath
	case 1, 2, 3:
		path = pick(g, `\\.\pipe\`, `\\.\pipe\`, `//./pipe/`, `\\?\pipe\`, `\\.\PIPE\`, `\\.\pipe\local\`, `\\.\pipe\LOCAL`) + pick(g, pipes...)
	case 4, 5:
		path = pick(g, directories...) + pick(g, "", "", `\x`, `\plugins\driver`, `\..\Windows`, `.`, `\`)
	case 6:
		path = pick(g, `/var/lib/kubelet/plugins`, `/`, `\`, `/etc/ssl`, `/dev`, `C:`, `C:\app`, `c:/app/data`, `/documents and settings/admin`, `C:\Users\All Users\x`, `/opt`, `C:\PROGRA~1`, `C:\\var\\lib\\kubelet\\x`,
			`/device`, `/dosdevices`, `/sessions/0`, `/silos`, `/mnt/data x/y`, `D:\data\x`, `D:\`, `relative`, `/windows:x`, `/var/lib/../x`, `C:\windows .\x`, `E:\Windows`)
	case 7:
		for range 1 + g.IntN(6) {
			path += pick(g, `\`, `/`, `\\`, `.`, `..`, ` `, `?`, `??`, `C:`, `pipe`, `device`, `namedpipe`, `global`, `csi-proxy-disk-v1`, `UNC`, `localhost`, `dosdevices`, `sessions`, `0`, `x`, `windows`, `var`,
				`\\.\pipe\`, `GLOBALROOT`, `npipe:`, `uvm://`, "\u017f", "\u212a", "\u0131", "\u0130", `~1`, `$`, `:`, `mup`, `ipc$`)
		}
	}
	if g.one(6) {
		path = g.changed(path)
	}
	return path
}

// changed has one thing in a text changed.
func (g *generator) changed(s string) string {
	at := g.IntN(len(s) + 1)
	switch g.IntN(6) {
	case 0:
		return strings.ToUpper(s)
	case 1:
		return strings.ReplaceAll(s, `\`, `/`)
	case 2:
		return strings.ReplaceAll(s, `/`, `\`)
	case 3:
		return s[:at] + pick(g, `.`, ` `, `\`, `/`, `?`, `:`, `x`, "\u017f", "\u212a", "\u0131", "\t", `..`, `\.\`, `~1`, `$`, `_`) + s[at:]
	case 4:
		return strings.NewReplacer("s", "\u017f", "k", "\u212a", "i", "\u0131").Replace(s)
	}
	return s + pick(g, `\`, `/`, `.`, ` `, `\.`, `/x`)
}

func (g *generator) spec() corev1.PodSpec {
	s := corev1.PodSpec{ServiceAccountName: pick(g, accounts...)}
	if g.one(20) {
		s.ServiceAccountName, s.DeprecatedServiceAccount = "", pick(g, append(accounts, "")...)
	}
	if g.one(25) {
		s.NodeSelector = map[string]string{"kubernetes.io/os": pick(g, "linux", "windows", "Linux")}
	}
	if g.one(25) {
		s.OS = &corev1.PodOS{Name: pick(g, corev1.Linux, corev1.Windows)}
	}
	if g.one(6) {
		s.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: g.windows()}
	}
	var volumes []string
	for _, name := range some(g, 3, "v1", "v2", "v3", "v4") {
		v := corev1.Volume{Name: name}
		if !g.one(8) {
			v.HostPath = &corev1.HostPathVolumeSource{Path: g.path()}
		} else {
			v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
		s.Volumes, volumes = append(s.Volumes, v), append(volumes, name)
	}
	for i := range 1 + g.IntN(2) {
		s.Containers = append(s.Containers, g.container(names[i], volumes))
	}
	if g.one(6) {
		s.InitContainers = append(s.InitContainers, g.container(names[2], volumes))
	}
	if g.one(10) {
		c := g.container("debugger", volumes)
		s.EphemeralContainers = append(s.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: pick(g, c.Name, "driver"), Image: c.Image, VolumeMounts: c.VolumeMounts, SecurityContext: c.SecurityContext,
		}})
	}
	return s
}

func (g *generator) windows() *corev1.WindowsSecurityContextOptions {
	w := &corev1.WindowsSecurityContextOptions{}
	if g.one(2) {
		w.HostProcess = new(g.one(2))
	}
	if g.one(2) {
		w.RunAsUserName = new(pick(g, users...))
	}
	return w
}

func (g *generator) container(name string, volumes []string) corev1.Container {
	c := corev1.Container{Name: name, Image: pick(g, images...)}
	if g.one(2) {
		c.Image = images[0]
	}
	if g.one(3) {
		c.SecurityContext = &corev1.SecurityContext{Privileged: new(g.one(2))}
		if g.one(3) {
			c.SecurityContext.WindowsOptions = g.windows()
		}
	}
	for _, volume := range volumes {
		if g.one(4) {
			continue
		}
		m := corev1.VolumeMount{Name: volume, MountPath: "/m/" + volume}
		switch g.IntN(10) {
		case 0:
			m.SubPath = g.subPath()
		case 1:
			m.SubPathExpr = g.subPath() + pick(g, "", "$(X)", "$$(X)", "$(", "$X")
		}
		c.VolumeMounts = append(c.VolumeMounts, m)
	}
	return c
}

func (g *generator) subPath() string {
	switch g.IntN(4) {
	case 0:
		return pick(g, g.vectors...).SubPath
	case 1:
		return pick(g, `x`, `logs`, `plugins\driver`, `a b`, `..`, `x\..\y`, `\.\pipe\csi-proxy-disk-v1`, `??\pipe\x`, `Device\NamedPipe\csi-proxy-disk-v1`, `Windows`, `csi-proxy-disk-v1`, `.\pipe`, `dosdevices\pipe\a`, "\u017fessions")
	case 2:
		return g.path()
	}
	return pipes[g.IntN(len(pipes))]
}

func (g *generator) meta(namespace string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: "x", Namespace: namespace, CreationTimestamp: metav1.NewTime(now), UID: "u"}
	if g.one(8) {
		m.Annotations = map[string]string{pick(g, "microsoft.com/hostprocess-container", "Microsoft.com/HostProcess-Inherit-User", "example.com/x", "microsoft.com/x", "m\u0130crosoft.com/hostprocess-container", "example.com/\u212A", "kubernetes.io/config.mirror"): "true"}
	}
	return m
}

// request is a request about an object of any kind.
func (g *generator) request() *request {
	r := &request{namespace: pick(g, namespaces...), operation: admission.Create, user: user.DefaultInfo{Name: "jane", Groups: []string{"system:authenticated"}}}
	meta, spec := g.meta(r.namespace), g.spec()
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: meta.Annotations}, Spec: spec}
	kind := g.IntN(14)
	r.object = g.object(r, kind, meta, template)
	if g.one(50) {
		if pod, ok := r.object.(*corev1.Pod); ok {
			pod.Spec.NodeName = pick(g, "n1", "n2", "")
			pod.Annotations = map[string]string{"kubernetes.io/config.mirror": "x"}
			r.user = user.DefaultInfo{Name: pick(g, "system:node:n1", "jane", "system:node:"), Groups: pick(g, []string{"system:nodes"}, []string{"system:authenticated"})}
		}
	}
	if g.one(8) {
		r.operation = admission.Update
		r.before = r.object.DeepCopyObject()
		if g.one(2) {
			old, spec := g.meta(r.namespace), spec
			if g.one(2) {
				spec = g.spec()
			}
			r.before = g.object(r, kind, old, corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: old.Annotations}, Spec: spec})
		}
		if _, ok := r.object.(*corev1.Pod); ok && g.one(4) {
			r.sub = "ephemeralcontainers"
		}
	}
	return r
}

func (g *generator) object(r *request, kind int, meta metav1.ObjectMeta, template corev1.PodTemplateSpec) runtime.Object {
	is := func(group, kind, resource string) metav1.TypeMeta {
		r.kind, r.resource = schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, resource
		apiVersion, _ := r.kind.ToAPIVersionAndKind()
		return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
	}
	switch kind {
	case 0:
		return &appsv1.Deployment{TypeMeta: is("apps", "Deployment", "deployments"), ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: template}}
	case 1:
		return &appsv1.DaemonSet{TypeMeta: is("apps", "DaemonSet", "daemonsets"), ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: template}}
	case 2:
		return &appsv1.StatefulSet{TypeMeta: is("apps", "StatefulSet", "statefulsets"), ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Template: template}}
	case 3:
		return &appsv1.ReplicaSet{TypeMeta: is("apps", "ReplicaSet", "replicasets"), ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Template: template}}
	case 4:
		return &batchv1.Job{TypeMeta: is("batch", "Job", "jobs"), ObjectMeta: meta, Spec: batchv1.JobSpec{Template: template}}
	case 5:
		return &batchv1.CronJob{TypeMeta: is("batch", "CronJob", "cronjobs"), ObjectMeta: meta, Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}}}}
	case 6:
		return &corev1.PodTemplate{TypeMeta: is("", "PodTemplate", "podtemplates"), ObjectMeta: meta, Template: template}
	case 7:
		return &corev1.ReplicationController{TypeMeta: is("", "ReplicationController", "replicationcontrollers"), ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Template: &template}}
	case 8, 9:
		r.namespace = ""
		meta.Namespace = ""
		v := &corev1.PersistentVolume{TypeMeta: is("", "PersistentVolume", "persistentvolumes"), ObjectMeta: meta}
		if g.one(2) {
			v.Spec.HostPath = &corev1.HostPathVolumeSource{Path: g.path()}
		} else {
			v.Spec.Local = &corev1.LocalVolumeSource{Path: g.path()}
		}
		if g.one(4) {
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: pick(g, "a", "b"), UID: "1"}
		}
		return v
	}
	return &corev1.Pod{TypeMeta: is("", "Pod", "pods"), ObjectMeta: meta, Spec: template.Spec}
}
