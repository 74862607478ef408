package admission

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// paths are host paths of every sort: guarded, not guarded, and none that could be allowed.
var paths = []string{
	csiPipe, `\\.\pipe\CSI-Proxy-disk-v1`, `//./pipe/csi-proxy-volume-v1`, `\\.\pipe\docker_engine`, `\\.\pipe\`, `\\.\`, `\\?\`,
	`\\.\pipe\csi-proxy-disk-v1\x`, `C:\Windows`, `c:\etc`, `/etc/kubernetes/pki`, `\\host\c$`,
	`\\.\PhysicalDrive0`, `\\server\share\x`, `C:\var\lib\kubelet`, `/var/log`, `C:\`, "", `\\.\pipe\..\x`, `\\server`, "\\\\.\\pipe\\csi-proxy\u202e",
}

// randomPod is a Pod of the given generator with every feature that is read, and some that are not.
func randomPod(g *rand.Rand) *corev1.Pod {
	p := testPod()
	truth := func() *bool {
		switch g.IntN(4) {
		case 0:
			return new(true)
		case 1:
			return new(false)
		}
		return nil
	}
	windows := func() *corev1.WindowsSecurityContextOptions {
		if g.IntN(4) > 0 {
			return nil
		}
		o := corev1.WindowsSecurityContextOptions{HostProcess: truth()}
		if g.IntN(2) == 0 {
			o.RunAsUserName = new([]string{"", `NT AUTHORITY\SYSTEM`, "ContainerUser"}[g.IntN(3)])
		}
		return &o
	}
	for range g.IntN(4) {
		v := corev1.Volume{Name: fmt.Sprint("v", g.IntN(3))} // duplicates on purpose
		if g.IntN(3) > 0 {
			v.HostPath = &corev1.HostPathVolumeSource{Path: paths[g.IntN(len(paths))]}
		} else {
			v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
	}
	containers := func() (out []corev1.Container) {
		for range g.IntN(3) {
			c := corev1.Container{Name: fmt.Sprint("c", g.IntN(2)), Image: "i"}
			if g.IntN(2) == 0 {
				c.SecurityContext = &corev1.SecurityContext{Privileged: truth(), WindowsOptions: windows()}
			}
			for range g.IntN(3) {
				m := corev1.VolumeMount{Name: fmt.Sprint("v", g.IntN(4)), MountPath: `C:\x`}
				switch g.IntN(4) {
				case 0:
					m.SubPath = []string{`pipe\csi-proxy-disk-v1`, `csi-proxy-x`, "logs", `..\csi-proxy-disk-v1`, "Windows"}[g.IntN(5)]
				case 1:
					m.SubPathExpr = []string{`pipe\csi-proxy-$(NAME)`, "$(PIPE)", `logs\$(NAME)`, `pipe\csi-proxy-disk-v1`}[g.IntN(4)]
				}
				c.VolumeMounts = append(c.VolumeMounts, m)
			}
			out = append(out, c)
		}
		return out
	}
	p.Spec.InitContainers, p.Spec.Containers = containers(), containers()
	for _, c := range containers() {
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: c.Name, Image: c.Image, SecurityContext: c.SecurityContext, VolumeMounts: c.VolumeMounts}})
	}
	if g.IntN(4) == 0 {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: windows()}
	}
	if g.IntN(6) == 0 {
		p.Annotations = map[string]string{"microsoft.com/hostprocess-container": "true"}
	}
	if g.IntN(3) == 0 {
		randomPlacement(g, &p.Spec)
	}
	return p
}

// randomObject is an object of a judged kind with a random Pod's spec, or a random PersistentVolume.
func randomObject(t testing.TB, g *rand.Rand) (metav1.GroupVersionKind, []byte) {
	t.Helper()
	kind := Kinds()[g.IntN(len(Kinds()))]
	if kind.Kind == "PersistentVolume" {
		return kind, marshal(t, randomVolume(g))
	}
	p := randomPod(g)
	if kind.Kind == "Pod" {
		return kind, marshal(t, p)
	}
	return kind, inTemplate(t, kind, p)
}

func randomVolume(g *rand.Rand) *corev1.PersistentVolume {
	v := testVolume("")
	v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{}
	path := paths[g.IntN(len(paths))]
	switch g.IntN(4) {
	case 0:
		v.Spec.Local = &corev1.LocalVolumeSource{Path: path}
	case 1: // the API server takes no such volume
		v.Spec.Local = &corev1.LocalVolumeSource{Path: path}
		v.Spec.HostPath = &corev1.HostPathVolumeSource{Path: paths[g.IntN(len(paths))]}
	case 2:
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}
	default:
		v.Spec.HostPath = &corev1.HostPathVolumeSource{Path: path}
	}
	if g.IntN(2) == 0 {
		v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "team-a", Name: "data", UID: "claim-uid"}
	}
	return v
}

// escapeLetters spells some letters of a JSON text's strings as escapes, which changes nothing for a JSON reader.
func escapeLetters(g *rand.Rand, raw []byte) []byte {
	var out []byte
	inString := false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c == '\\':
			out = append(out, c, raw[i+1])
			i++
			continue
		case c == '"':
			inString = !inString
		case inString && c >= 'A' && c <= 'z' && g.IntN(5) == 0:
			out = fmt.Appendf(out, `\u%04x`, c)
			continue
		}
		out = append(out, c)
	}
	return out
}

func TestExtractionIsThatOfKubernetesOwnDecoder(t *testing.T) {
	scope := testScope(t, overlapping())
	matter := map[string]int{}
	seeds := uint64(2000)
	if os.Getenv("PIPEGUARD_EXHAUSTIVE") != "" {
		seeds = 100_000
	}
	for seed := range seeds {
		g := rand.New(rand.NewPCG(seed, 1))
		kind, raw := randomObject(t, g)
		if g.IntN(2) == 0 {
			raw = escapeLetters(g, raw)
		}
		want, annotations, err := reference(scope, kind.Kind, raw)
		if err != nil {
			t.Fatal(err)
		}
		obj, err := readObject(raw, kind, plenty())
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, raw)
		}
		got, err := extract(scope, &obj, plenty())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(extraction{}), cmpopts.EquateEmpty(),
			cmpopts.IgnoreUnexported(Target{}), cmp.AllowUnexported(Mount{}),
			cmpopts.IgnoreFields(extraction{}, "scope", "spec", "field", "byName", "mounted", "work", "allowance", "made")); diff != "" {
			t.Fatalf("seed %d: extraction differs (-reference +got):\n%s\n%s", seed, diff, raw)
		}
		if diff := cmp.Diff(annotations, obj.podMeta().annotations, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d: annotations differ:\n%s", seed, diff)
		}
		if got, want := isRelevant(&got, obj.podMeta()), matters(&want, annotations); got != want {
			t.Fatalf("seed %d: relevant %t, want %t\n%s", seed, got, want, raw)
		}
		e, err := decodeReview([]byte(reviewOf(kind, string(raw))), plenty())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if matters(&want, annotations) {
			matter[kind.Kind]++
			if !e.mayMatter {
				t.Fatalf("seed %d: the envelope's reading skips what matters\n%s", seed, raw)
			}
		}
	}
	for _, kind := range Kinds() {
		if matter[kind.Kind] < 30 {
			t.Errorf("only %d objects of kind %s held something to decide", matter[kind.Kind], kind.Kind)
		}
	}
}

func TestEnvelopeSkipsWhatCannotMatter(t *testing.T) {
	for object, want := range map[string]bool{
		`{"spec":{"volumes":[{"emptyDir":{}}]}}`:                                      false,
		`{"spec":{"containers":[{"env":[{"name":"hostPath","value":"x"}]}]}}`:         false,
		`{"spec":{"containers":[{"args":["hostPath: microsoft.com hostProcess"]}]}}`:  false,
		`{"spec":{"HostPath":1,"hostpath":2,"f:hostPath":3}}`:                         false,
		`{"metadata":{"annotations":{"example.com/a":"b"}}}`:                          false,
		`{"spec":{"volumes":[{"hostPath":{"path":"/var/log"}}]}}`:                     true,
		`{"spec":{"volumes":[{"\u0068ostPath":{"path":"x"}}]}}`:                       true,
		`{"spec":{"volumes":[{"host\u0050\u0061th":{"path":"x"}}]}}`:                  true,
		`{"spec":{"securityContext":{"windowsOptions":{"hostProcess":true}}}}`:        true,
		`{"spec":{"securityContext":{"windowsOptions":{"hostProces\u0073":true}}}}`:   true,
		`{"metadata":{"annotations":{"microsoft.com/hostprocess-container":"true"}}}`: true,
		`{"metadata":{"annotations":{"MicroSoft.com/x":"true"}}}`:                     true,
		`{"metadata":{"annotations":{"m\u0069crosoft.com/x":"true"}}}`:                true,
		`{"metadata":{"annotations":{"mİcrosoft.com/x":"true"}}}`:                     true,
		`{"spec":null}`:                                          false,
		`{"spec":{"local":{"path":"x"}}}`:                        true,
		`{"spec":{"\u006cocal":{"path":"x"}}}`:                   true,
		`{"spec":{"Local":1,"locals":2,"x":["local"],"loca":3}}`: false,
	} {
		e, err := decodeReview([]byte(podReview(object)), plenty())
		if err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		if e.mayMatter != want {
			t.Errorf("%s: may matter %t, want %t", object, e.mayMatter, want)
		}
	}
}

func TestAServiceAccountThatIsNotNamedIsTheDefaultOne(t *testing.T) {
	for text, want := range map[string]string{
		"serviceAccountName: a\nserviceAccount: a": "a",
		"serviceAccountName: a\nserviceAccount: b": "a",
		"serviceAccount: b":                        "b",
		"hostNetwork: true":                        "default",
	} {
		spec, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		obj, err := readObject([]byte(`{"apiVersion":"v1","kind":"Pod","spec":`+string(spec)+`}`), podKind, plenty())
		if err != nil || obj.pod.serviceAccount != want {
			t.Errorf("%q: %q, %v; want %q", text, obj.pod.serviceAccount, err, want)
		}
	}
	if obj, err := readObject([]byte(emptyPod), podKind, plenty()); err != nil || obj.pod.serviceAccount != "default" {
		t.Errorf("without spec: %q, %v", obj.pod.serviceAccount, err)
	}
}
