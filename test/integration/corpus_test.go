//go:build !windows

package integration

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/routes"
)

// sample is one object of the corpus.
type sample struct {
	object client.Object
	// plain says that nothing in it can lead to a pipe by any reading, so that it must not be sent.
	plain bool
}

// corpus makes objects of every kind from ordinary and from odd parts.
type corpus struct {
	*rand.Rand
	namespace string
	odd       []string // paths
	n         int
}

func newCorpus(t *testing.T, namespace string, seed uint64) *corpus {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root(), "internal", "core", "pipepath", "testdata", "pipe-path-vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct{ HostPath, SubPath string }
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors) < 50 {
		t.Fatalf("%d vectors: %v", len(vectors), err)
	}
	c := &corpus{Rand: rand.New(rand.NewPCG(seed, seed)), namespace: namespace, odd: []string{
		`C:\`, `c:/Windows/system32`, `/Windows`, `/WINDOWS/System32`, `/etc/kubernetes`, `/etc/kubernetes/manifests`, `/ETC/Kubernetes/`, `/etc`,
		`\etc\kubernetes`, `\\.\PHYSICALDRIVE0`, `\\server\C$`, `//server/admin$/x`, `/Device/HarddiskVolume1`, `/dosdevices/c:`, `/??/C:`, `/`, `//`, `///`, `/./etc`,
		`/etc./kubernetes`, `/global/x`, `/GLOBAL??/pipe`, `/progra~1`, `/users/x`, `/x/`, `/x//y`, `//x/y`, `relative`, `/a b`, "/t\u0131lde", `/var/lib/kubelet/`,
		`\\?\Volume{00000000-0000-0000-0000-000000000000}\`, `\\.\pipe\docker_engine`, `npipe:////./pipe/containerd-containerd`, `/windows.`, `/device/`,
	}}
	for _, v := range vectors {
		c.odd = append(c.odd, v.HostPath)
	}
	return c
}

// pick returns one of all.
func pick[T any](c *corpus, all ...T) T { return all[c.IntN(len(all))] }

// one says yes once in n times.
func (c *corpus) one(n int) bool { return c.IntN(n) == 0 }

func (c *corpus) plainPath() string {
	segment := func() string {
		return pick(c, "var", "lib", "run", "opt", "srv", "home", "k8s", "data-1", "a_b", "v1.2", "x@y", "c++", "Log", "cni", "etc2", "mnt")
	}
	path := "/" + pick(c, "run", "srv", "home", "k8s", "data-1", "sys", "proc", "dev", "etc2", "mnt") // what nobody guards
	for range c.IntN(4) {
		path += "/" + segment()
	}
	if c.one(8) {
		path += "/"
	}
	return path
}

// path is a plain one, or now and then an odd one.
func (c *corpus) path(plain *bool) string {
	if !c.one(4) {
		return c.plainPath()
	}
	*plain = false
	path := pick(c, c.odd...)
	switch c.IntN(4) {
	case 0:
		path = strings.ToUpper(path)
	case 1:
		path = strings.ReplaceAll(path, `\`, `/`)
	case 2:
		path = strings.ReplaceAll(path, `/`, `\`)
	}
	return path
}

func (c *corpus) hostProcess(plain *bool) *corev1.WindowsSecurityContextOptions {
	switch c.IntN(12) {
	case 0:
		*plain = false
		return &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}
	case 1:
		return &corev1.WindowsSecurityContextOptions{RunAsUserName: new("ContainerUser")}
	}
	return nil
}

func (c *corpus) annotations(plain *bool) map[string]string {
	out := map[string]string{}
	if c.one(3) {
		out["example.com/note"] = "microsoft.com/hostprocess-container"
	}
	if c.one(10) {
		*plain = false
		out[pick(c, "m\u0130crosoft.com/hostprocess-container", "microsoft.com/hostprocess-container", "Microsoft.com/HostProcess-Inherit-User", "x.microsoft.com/y", "MICROSOFT.COM/hostprocess-rootfs-location")] = pick(c, "true", "false", "")
	}
	return out
}

// template is a random pod template. Beside the volumes that are mounted it may have others.
func (c *corpus) template(plain *bool) corev1.PodTemplateSpec {
	var paths []string
	for range c.IntN(3) {
		paths = append(paths, c.path(plain))
	}
	t := template("", paths...)
	t.Annotations = c.annotations(plain)
	container := &t.Spec.Containers[0]
	for i := range container.VolumeMounts {
		if c.one(4) {
			container.VolumeMounts[i].SubPath = pick(c, "sub", "a/b", ".hidden", "x.y")
		}
		if c.one(20) {
			*plain = false
			container.VolumeMounts[i].SubPath = pick(c, `.\pipe\csi-proxy-disk-v1`, `\.\pipe\csi-proxy-disk-v1`, `pipe\csi-proxy-disk-v1`, `kubernetes`, `system32`, `windows`)
		}
		if c.one(12) { // it leads out of the volume
			*plain = false
			out := pick(c, `..\`, `..\..\`, `a\..\..\`, `..\..\..\..\`, `. .\`, `.:.\`, `. .\. .\`) + pick(c, `Device\NamedPipe\csi-proxy-disk-v1`, `Windows`, `kubernetes`, `$(X)`, `etc\kubernetes\pki`, `x`)
			if c.one(2) {
				container.VolumeMounts[i].SubPath, container.VolumeMounts[i].SubPathExpr = "", out
			} else {
				container.VolumeMounts[i].SubPath = out
			}
		}
	}
	switch w := c.hostProcess(plain); c.IntN(3) {
	case 0:
		t.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: w}
	case 1:
		container.SecurityContext = &corev1.SecurityContext{WindowsOptions: w}
	default:
		t.Spec.InitContainers = []corev1.Container{{Name: "init", Image: image, SecurityContext: &corev1.SecurityContext{WindowsOptions: w}}}
	}
	if t.Spec.SecurityContext != nil || container.SecurityContext != nil || t.Spec.InitContainers != nil {
		t.Spec.HostNetwork = true // HostProcess asks for it
	}
	if c.one(5) {
		container.VolumeMounts = nil
	}
	if c.one(3) {
		c.place(&t.Spec)
	}
	if c.one(3) {
		t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	return t
}

// place says in some way on which nodes a pod runs.
func (c *corpus) place(s *corev1.PodSpec) {
	name := func() string { return pick(c, "linux", "linux", "linux", "windows", "Linux") }
	key := func() string { return pick(c, corev1.LabelOSStable, corev1.LabelOSStable, "beta.kubernetes.io/os") }
	switch c.IntN(3) {
	case 0:
		if s.OS = (&corev1.PodOS{Name: pick(c, corev1.Linux, corev1.Windows)}); s.OS.Name == corev1.Linux { // else the API server refuses what concerns Windows
			s.SecurityContext = nil
			for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
				for i := range list {
					list[i].SecurityContext = nil
				}
			}
		}
	case 1:
		s.NodeSelector = map[string]string{key(): name(), "pool": "linux"}
	default:
		var terms []corev1.NodeSelectorTerm
		count := pick(c, 1, 1, 2, 3, 32, 33)
		for range count {
			var term corev1.NodeSelectorTerm
			for range pick(c, 1, 1, 2, 2, 32, 33) {
				e := corev1.NodeSelectorRequirement{Key: key(), Operator: pick(c, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists)}
				if e.Operator != corev1.NodeSelectorOpExists {
					for range pick(c, 1, 1, 1, 2, 32, 33) {
						e.Values = append(e.Values, name())
					}
				}
				term.MatchExpressions = append(term.MatchExpressions, e)
			}
			if count > 2 || c.one(2) { // else hardly any would be proven
				term.MatchExpressions[0] = corev1.NodeSelectorRequirement{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}}
			}
			if c.one(8) {
				term.MatchExpressions, term.MatchFields = nil, []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}}}
			}
			terms = append(terms, term)
		}
		affinity := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
		if c.one(5) {
			affinity = &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: terms[0]}}}
		}
		s.Affinity = &corev1.Affinity{NodeAffinity: affinity}
	}
}

// next makes the next object.
func (c *corpus) next() sample {
	s := sample{plain: true}
	switch kinds := routes.Workloads(); c.IntN(4) {
	case 0:
		t := c.template(&s.plain)
		p := &corev1.Pod{Spec: t.Spec}
		p.Annotations = t.Annotations
		s.object = p
	case 1:
		s.object = volume(pick(c, routes.OnHost, routes.Local)(c.path(&s.plain)))
	default:
		s.object = kinds[c.IntN(len(kinds))].Make(c.template(&s.plain))
	}
	c.n++
	s.object.SetName(fmt.Sprintf("sample-%04d", c.n))
	if _, cluster := s.object.(*corev1.PersistentVolume); !cluster {
		s.object.SetNamespace(c.namespace)
	}
	return s
}
