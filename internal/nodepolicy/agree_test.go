package nodepolicy_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/policyset"
	builtin "github.com/pipeguard/pipeguard/policies"
	"github.com/pipeguard/pipeguard/test/policytest"
)

// words of generated policies and callers: few, so that many fit, and many of which one is the beginning of another.
var words = struct{ namespaces, accounts, containers, registries, repositories, tags, digests, sids, programs []string }{
	namespaces:   []string{"team", "team-a"},
	accounts:     []string{"default", "node", "node-sa"},
	containers:   []string{"app", "app-2", "driver"},
	registries:   []string{"", "reg.example/", "reg.example:5000/", "Reg.example/"},
	repositories: []string{"driver", "driver-of-others", "driver/x", "team/driver", "team-a/driver", "team"},
	tags:         []string{"", ":v1", ":v1.2", ":v1-2", ":v10", ":latest"},
	sids:         []string{"S-1-5-18", "S-1-5-19"},
	programs:     []string{`C:\driver.exe`, `C:\driver.exe.exe`, `C:\DRIVER\agent.exe`},
	digests:      []string{"", "", "@sha256:" + strings.Repeat("a1", 32), "@sha256:" + strings.Repeat("b2", 32)},
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// some are up to two of a list, or none.
func some(r *rand.Rand, list []string) (out []string) {
	for range r.IntN(3) {
		if s := pick(r, list); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func imageName(r *rand.Rand) string {
	return pick(r, words.registries) + pick(r, words.repositories) + pick(r, words.tags) + pick(r, words.digests)
}

// imagePattern is a name or a part of one, with or without a star; it may be one that no policy takes.
func imagePattern(r *rand.Rand) string {
	name := imageName(r)
	switch r.IntN(8) {
	case 0:
		return name[:r.IntN(len(name)+1)] + "*"
	case 1:
		return pick(r, words.registries) + pick(r, words.repositories) + pick(r, []string{"*", ":*", "@*", "/*", ":v1*", ":v1.*", ":v1-*"})
	case 2:
		return strings.TrimPrefix(pick(r, words.digests[2:]), "@")
	case 3:
		return pick(r, words.registries[1:]) + pick(r, []string{"*", "team*", "team/*"})
	}
	return name
}

var agreePipes = []string{"csi-proxy-disk-v1", "csi-proxy-disk-v1beta3", "csi-proxy-filesystem-v1", "csi-proxy-system-v1alpha1", "csi-proxy-iscsi-v1alpha2"}

var agreePatterns = []v1alpha1.PipePattern{"csi-proxy-disk-*", "csi-proxy-disk-v1", "CSI-Proxy-disk-v1beta3", "csi-proxy*", "csi-proxy-filesystem-v1", "csi-proxy-system-*", "csi-proxy-iscsi-v1alpha2"}

func generated(r *rand.Rand, i int) v1alpha1.PipePolicy {
	p := v1alpha1.PipePolicy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}, Spec: spec{Pipes: []v1alpha1.PipePattern{pick(r, agreePatterns)}}}
	// maybeEnding ends some of them. No permission ends within seconds: a node also goes by its monotonic clock.
	maybeEnding := func(s v1alpha1.Subject) v1alpha1.Subject {
		if r.IntN(4) == 0 {
			ends := metav1.NewTime(now.Add(time.Duration(pick(r, []int{-3600e9, -1, 0, 3600e9}))))
			s.Owner, s.Reason, s.ExpiresAt = "o", "r", &ends
		}
		return s
	}
	for n := range 1 + r.IntN(3) {
		s := maybeEnding(v1alpha1.Subject{
			Name: fmt.Sprint("s", n), Namespace: pick(r, words.namespaces), ServiceAccounts: some(r, words.accounts), Containers: some(r, words.containers),
		})
		for range r.IntN(4) {
			if image := imagePattern(r); !slices.Contains(s.Images, image) {
				s.Images = append(s.Images, image)
			}
		}
		p.Spec.Subjects = append(p.Spec.Subjects, s)
	}
	if r.IntN(2) == 0 { // before the containers
		process := maybeEnding(v1alpha1.Subject{Name: "process", Process: &v1alpha1.NodeProcess{Account: pick(r, words.sids), Program: pick(r, words.programs)}})
		p.Spec.Subjects = append([]v1alpha1.Subject{process}, p.Spec.Subjects...)
	}
	return p
}

// running is a process of the node, or of a container; of some it is in doubt what they are.
func running(r *rand.Rand) caller.Caller {
	c := caller.Caller{Assurance: "process", User: caller.User{SID: pick(r, words.sids)}, Process: caller.Process{PID: 7, Exe: pick(r, words.programs)}}
	if r.IntN(2) == 0 {
		c.Process.Exe = strings.ToLower(c.Process.Exe)
	}
	switch r.IntN(6) {
	case 0:
		c.Assurance = "sid"
	case 1:
		c.Doubt = "x"
	case 2:
		c.Assurance, c.Pod, c.Container = "pod", caller.Pod{Namespace: "nobodys", ServiceAccount: "x"}, caller.Container{Name: "x", HostProcess: r.IntN(2) == 0}
	}
	return c
}

// permitsProcess is the model: whether a policy that opens the pipe has that account with that program, and the permission has not ended.
func permitsProcess(objects []v1alpha1.PipePolicy, pipe string, c caller.Caller) bool {
	if c.Assurance == "sid" || c.Assurance == "pod" && !c.Container.HostProcess {
		return false
	}
	return slices.ContainsFunc(objects, func(o v1alpha1.PipePolicy) bool {
		governed, isTold := governedPipe([]v1alpha1.PipePolicy{o}, pipe)
		return governed && !isTold && slices.ContainsFunc(o.Spec.Subjects, func(s v1alpha1.Subject) bool {
			return s.Process != nil && s.Process.Account == c.User.SID && strings.EqualFold(s.Process.Program, c.Process.Exe) &&
				(s.ExpiresAt == nil || s.ExpiresAt.Unix() > now.Unix())
		})
	})
}

// taken are generated policies that are taken when they are applied. What is not is no matter of either end.
func taken(r *rand.Rand) (out []v1alpha1.PipePolicy) {
	for len(out) < 6 {
		if p := generated(r, len(out)); len(policyset.CheckPipePolicy(&p)) == 0 {
			out = append(out, p)
		}
	}
	return out
}

// mounting is a pod of which each container mounts each pipe.
func mounting(r *rand.Rand) *corev1.Pod {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: pick(r, words.namespaces)}}
	pod.Spec.ServiceAccountName = pick(r, words.accounts)
	for _, pipe := range agreePipes {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: pipe, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: `\\.\pipe\` + pipe}}})
	}
	for range 12 {
		c := corev1.Container{Name: pick(r, words.containers), Image: imageName(r)}
		for _, v := range pod.Spec.Volumes {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: v.HostPath.Path})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	return pod
}

// reviewerOf judges by policies as a webhook does. It returns their revision too.
func reviewerOf(t *testing.T, objects []v1alpha1.PipePolicy) (*admission.Reviewer, string) {
	t.Helper()
	base, err := policy.LoadFS(builtin.FS())
	if err != nil {
		t.Fatal(err)
	}
	modules, err := policyset.Sources{Base: base, Parameters: admission.DefaultParameters(), PipePolicies: objects}.Assemble()
	if err != nil {
		t.Fatal(err)
	}
	engine, err := policy.New(policy.Options{BaseTested: true})
	if err != nil {
		t.Fatal(err)
	}
	active, err := engine.Activate(t.Context(), modules)
	if err != nil {
		t.Fatal(err)
	}
	reviewer, err := admission.NewReviewer(admission.ReviewerOptions{Engine: engine, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return reviewer, active.Revision()
}

// refusedMounts are the fields of a pod that admission refuses.
func refusedMounts(t *testing.T, reviewer *admission.Reviewer, pod *corev1.Pod) map[string]bool {
	t.Helper()
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	kind, resource := metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	result := reviewer.Review(t.Context(), &admissionv1.AdmissionRequest{
		UID: "u", Kind: kind, RequestKind: &kind, Resource: resource, RequestResource: &resource,
		Namespace: pod.Namespace, Name: pod.Name, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
	})
	out := map[string]bool{}
	for _, f := range result.Findings {
		switch {
		case f.Code == "PG010" && f.Effect == policy.EffectDeny:
			out[f.Field] = true
		case f.Code != "PG009" && f.Code != "PG001": // a warning, or a pipe that no policy governs
			t.Fatalf("%s at %s", f.Code, f.Field)
		}
	}
	return out
}

// governedPipe says whether any policy governs a pipe, and whether the status of one of them says that it permits nothing there on nodes.
func governedPipe(objects []v1alpha1.PipePolicy, pipe string) (governed, isTold bool) {
	for i, o := range objects {
		pattern := strings.ToLower(string(o.Spec.Pipes[0]))
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		if pattern != pipe && (!isPrefix || !strings.HasPrefix(pipe, prefix)) {
			continue
		}
		governed = true
		isTold = isTold || slices.ContainsFunc(policyset.ForAdmissionAlone(&objects[i]), func(note string) bool {
			return strings.HasPrefix(note, "a pattern covers ") && slices.Contains(strings.Fields(note), pipe)
		})
	}
	return governed, isTold
}

// TestBothEndsSayTheSame holds what admission says of what pods declare against what a node says of the same when it is proven. The only class in which they
// differ is one that the status of a policy names.
func TestBothEndsSayTheSame(t *testing.T) {
	policytest.WithoutRaceDetector(t)
	most := 100_000
	if n, err := strconv.Atoi(os.Getenv("PIPEGUARD_PAIRS")); err == nil {
		most = n
	}
	if testing.Short() || goruntime.GOOS == "windows" { // where nothing of it is other
		most = 5_000
	}
	pairs, permitted, byClass, processes := 0, 0, 0, 0
	for seed := 0; pairs < most; seed++ {
		r := rand.New(rand.NewPCG(uint64(seed), 14))
		objects := taken(r)
		reviewer, _ := reviewerOf(t, objects)
		clock := now
		node := live(t, &clock, objects...)
		for _, note := range node.Notes() {
			if strings.Contains(note, "image") || strings.Contains(note, "account") || strings.Contains(note, "container") {
				t.Errorf("a policy that was taken permits less on a node: %s", note)
			}
		}
		for range 60 {
			for _, pipe := range agreePipes {
				c := running(r)
				if governed, _ := governedPipe(objects, pipe); !governed {
					continue
				}
				api := known[slices.IndexFunc(known, func(a access.API) bool { return "csi-proxy-"+a.Group+"-"+a.Version == pipe })]
				want := permitsProcess(objects, pipe, c)
				if d := node.Decide(call(api.Group, api.Version, api.Operations[0], c)); d.Allowed != want {
					text, _ := json.Marshal(objects)
					t.Fatalf("seed %d, %+v, pipe %s: node %t (%s), want %t\n%s", seed, c, pipe, d.Allowed, d.Reason, want, text)
				}
				if want {
					processes++
				}
			}
			pod := mounting(r)
			refused := refusedMounts(t, reviewer, pod)
			for i, c := range pod.Spec.Containers {
				for j, pipe := range agreePipes {
					api := known[slices.IndexFunc(known, func(a access.API) bool { return "csi-proxy-"+a.Group+"-"+a.Version == pipe })]
					governed, isTold := governedPipe(objects, pipe)
					if !governed {
						continue
					}
					decision := node.Decide(call(api.Group, api.Version, api.Operations[0], caller.Caller{Assurance: "pod", User: caller.User{SID: pick(r, words.sids)}, Process: caller.Process{Exe: pick(r, words.programs)}, Pod: caller.Pod{Namespace: pod.Namespace, ServiceAccount: pod.Spec.ServiceAccountName, Name: "x"}, Container: caller.Container{Name: c.Name, Image: c.Image}}))
					field := fmt.Sprintf("spec.containers[%d].volumeMounts[%d]", i, j)
					pairs++
					switch {
					case decision.Allowed != refused[field]:
						if decision.Allowed {
							permitted++
						}
					case !decision.Allowed && isTold:
						byClass++
					default:
						text, _ := json.Marshal(objects)
						t.Fatalf("seed %d, %s/%s container %s of %s, pipe %s: admission %t, node %t (%s)\n%s",
							seed, pod.Namespace, pod.Spec.ServiceAccountName, c.Name, c.Image, pipe, !refused[field], decision.Allowed, decision.Reason, text)
					}
				}
			}
		}
	}
	t.Logf("%d pairs of a policy and a caller, %d permitted, %d of the one class in which the ends differ; %d processes of nodes permitted", pairs, permitted, byClass, processes)
	if permitted < pairs/20 || byClass == 0 || processes == 0 {
		t.Errorf("of %d pairs only %d are permitted, and %d are of the class; %d processes of nodes are permitted", pairs, permitted, byClass, processes)
	}
}
