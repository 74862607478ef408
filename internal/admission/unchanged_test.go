package admission

import (
	"context"
	"reflect"
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/turns"
)

// admittedPod is a pod that was admitted once and would not be today; it waits for a finalizer.
func admittedPod() *corev1.Pod {
	p := testPod(csiPipe)
	p.Finalizers = []string{"example.com/cleanup"}
	return p
}

func TestAnUpdateThatLeavesTheAccessAsItWasPasses(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	for name, change := range map[string]func(*corev1.Pod){
		"the last finalizer is removed": func(p *corev1.Pod) { p.Finalizers = nil },
		"a label is added":              func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} },
		"an annotation of a controller": func(p *corev1.Pod) { p.Annotations = map[string]string{"example.com/seen": "1"} },
		"a toleration is added": func(p *corev1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists})
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, answer := post(t, r, reviewBody(t, updateRequest(t, admittedPod(), with(admittedPod(), change))))
			if !answer.Allowed {
				t.Fatalf("refused: %s", answer.Result.Message)
			}
			if got := answer.AuditAnnotations; got[annotationUnchanged] != "true" || got[annotationCodes] != "PG001" || got[annotationEffect] != "warn" {
				t.Errorf("annotations %v do not tell what was let pass", got)
			}
			if len(answer.Warnings) != 1 || !strings.HasPrefix(answer.Warnings[0], `PG001: container "app": `) || !strings.HasSuffix(answer.Warnings[0], " (unchanged)") {
				t.Errorf("warnings %q", answer.Warnings)
			}
		})
	}
}

// What policies say of the containers is found anew for each of two objects, and does not count as a difference of theirs.
func TestAnUpdateOfAPodThatPoliciesGovernPasses(t *testing.T) {
	two := governedBy(until(clock))
	two.PipePolicies["other"] = PipePolicy{Pipes: []string{"csi-*"}, Subjects: []access.Subject{{Name: "a", Namespace: "team-b"}}}
	for name, pod := range map[string]func() *corev1.Pod{
		"nobody's":       func() *corev1.Pod { return testPod(csiPipe, `\\.\pipe\csi-proxy-disk-v1`) },
		"one that ended": subjectPod,
		"a volume": func() *corev1.Pod {
			p := testPod(csiPipe)
			p.Spec.Containers[0].VolumeMounts = nil
			return p
		},
	} {
		r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = newPolicyEngine(t, two, nil) })
		res := r.Review(t.Context(), updateRequest(t, pod(), with(pod(), func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} })))
		if !res.Allowed || !res.Unchanged {
			t.Errorf("%s: allowed %t, unchanged %t: %s", name, res.Allowed, res.Unchanged, res.Message)
		}
		res = r.Review(t.Context(), updateRequest(t, pod(), with(pod(), imageOf("evil"))))
		if res.Allowed {
			t.Errorf("%s: another image is admitted", name)
		}
	}
}

// A policy that records does not refuse for the number of what it records, and one that denies does not keep a pod from its deletion.
func TestAPodWithMoreFindingsThanAreToldIsJudgedLikeAnyOther(t *testing.T) {
	many := func() *corev1.Pod {
		p := testPod(csiPipe)
		c := &p.Spec.Containers[0]
		for i := range 1500 {
			m := c.VolumeMounts[0]
			m.MountPath += strconv.Itoa(i)
			c.VolumeMounts = append(c.VolumeMounts, m)
		}
		return p
	}
	for _, action := range []Action{ActionAudit, ActionWarn, ActionDeny} {
		policies := governedBy(func(p *PipePolicy) { p.Action = action })
		policies.Parameters.AllowedNamespaces = nil
		r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = newPolicyEngine(t, policies, nil) })
		res := r.Review(t.Context(), createRequest(t, many()))
		if res.Allowed != (action != ActionDeny) || res.Code != "PG010" {
			t.Errorf("%s: allowed %t, %s: %.200s", action, res.Allowed, res.Code, res.Message)
		}
		res = r.Review(t.Context(), updateRequest(t, many(), with(many(), func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} })))
		if !res.Allowed || res.Unchanged != (action == ActionDeny) {
			t.Errorf("%s: an update that changes nothing: allowed %t, unchanged %t: %.200s", action, res.Allowed, res.Unchanged, res.Message)
		}
		res = r.Review(t.Context(), updateRequest(t, many(), with(many(), func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0])
			p.Spec.Containers[1].Name, p.Spec.Containers[1].VolumeMounts = "another", p.Spec.Containers[0].VolumeMounts[:1]
		})))
		if res.Allowed != (action != ActionDeny) {
			t.Errorf("%s: another container that mounts: allowed %t: %.200s", action, res.Allowed, res.Message)
		}
	}
}

func TestAnUpdateThatChangesTheAccessIsRefused(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	for name, change := range map[string]func(*corev1.Pod){
		"another image": func(p *corev1.Pod) { p.Spec.Containers[0].Image = "evil" },
		"one more mount of the same volume": func(p *corev1.Pod) {
			c := &p.Spec.Containers[0]
			c.VolumeMounts = append(c.VolumeMounts, c.VolumeMounts[0])
		},
		"another guarded pipe":    func(p *corev1.Pod) { p.Spec.Volumes[0].HostPath.Path = `\\.\pipe\csi-proxy-disk-v1` },
		"another spelling":        func(p *corev1.Pod) { p.Spec.Volumes[0].HostPath.Path = `//./pipe/csi-proxy-filesystem-v1` },
		"one more container":      func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "new"}) },
		"a container is renamed":  func(p *corev1.Pod) { p.Spec.Containers[0].Name = "new" },
		"another service account": func(p *corev1.Pod) { p.Spec.ServiceAccountName = "new" },
		"HostProcess for the pod": func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: hostProcess()}
		},
		"the network of the host": func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"an account": func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{RunAsUserName: new("ContainerAdministrator")}}
		},
		"a declared volume more":    func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, pipeVolume("w", csiPipe)) },
		"an annotation for the run": func(p *corev1.Pod) { p.Annotations = map[string]string{"microsoft.com/hostprocess-container": "true"} },
		"another pod altogether":    func(p *corev1.Pod) { p.UID = "other" },
		"another name":              func(p *corev1.Pod) { p.Name = "other" },
		"a pod of another namespace": func(p *corev1.Pod) {
			p.Namespace = "team-b"
		},
	} {
		t.Run(name, func(t *testing.T) {
			res := r.Review(t.Context(), updateRequest(t, admittedPod(), with(admittedPod(), change)))
			if res.Allowed || res.Unchanged || res.Code != "PG001" {
				t.Errorf("allowed %t, unchanged %t, %s", res.Allowed, res.Unchanged, res.Code)
			}
		})
	}
}

// A field that policies are given later must not be forgotten.
func TestInputsThatDifferInAnyFieldAreNotAlike(t *testing.T) {
	sample := func() *Input {
		return &Input{Containers: make([]Container, 1), Mounts: make([]Mount, 1), Unmounted: make([]Volume, 1), PersistentVolumes: make([]PersistentVolume, 1)}
	}
	compared := 0
	var walk func(whole *Input, v reflect.Value, path string)
	walk = func(whole *Input, v reflect.Value, path string) {
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		switch v.Kind() {
		case reflect.String:
			v.SetString("other")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Map:
			v.Set(reflect.ValueOf(map[string]string{"microsoft.com/a": "b"}))
		case reflect.Pointer:
			v.Set(reflect.ValueOf(ungoverned))
		case reflect.Struct:
			for f, value := range v.Fields() {
				if f.IsExported() {
					walk(whole, value, path+"."+f.Name)
				}
			}
			return
		case reflect.Slice:
			if v.Len() > 0 {
				walk(whole, v.Index(0), path+"[0]")
				return
			}
			v.Set(reflect.ValueOf([]string{"other"}))
		default:
			t.Fatalf("%s: a %s", path, v.Kind())
		}
		compared++
		bookkeeping := path == ".Labels" || path == ".Annotations" || path == ".Pod.Labels"
		if whole.isLike(sample()) != bookkeeping {
			t.Errorf("inputs that differ in %s: alike %t", path, !bookkeeping)
		}
		v.Set(was)
	}
	in := sample()
	walk(in, reflect.ValueOf(in).Elem(), "")
	if compared < 50 {
		t.Errorf("%d fields were compared", compared)
	}
}

// Where policies read the object, all that they could read of a pod counts. What controllers write beside it does not.
func TestAnUpdateOfWhatAModuleReadsIsRefused(t *testing.T) {
	const rule = `package pipeguard.admission

# METADATA
# title: Pods have no credentials of their own
# custom: {code: TEST1}
findings contains {"code": "TEST1", "effect": "deny", "field": "spec"} if {
	walk(input.object, [path, _])
	path[count(path) - 1] == "gmsaCredentialSpecName"
}
`
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) {
		o.Engine = newEngine(t, DefaultParameters(), map[string]string{"own.rego": rule})
	})
	credentials := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new(name)}}
		}
	}
	for _, kind := range holders() {
		old := asKind(t, kind, with(testPod(), credentials("printers")))
		res := r.Review(t.Context(), requestFor(t, asKind(t, kind, with(testPod(), credentials("domain-admins"))), old))
		if res.Allowed || res.Unchanged || res.Code != "TEST1" {
			t.Errorf("%s: other credentials: allowed %t, unchanged %t, %s", kind.Kind, res.Allowed, res.Unchanged, res.Code)
		}
		same := with(testPod(), credentials("printers"))
		same.Finalizers, same.Labels = nil, map[string]string{"a": "b"}
		if res = r.Review(t.Context(), requestFor(t, asKind(t, kind, same), old)); !res.Allowed || !res.Unchanged {
			t.Errorf("%s: the same credentials: allowed %t, unchanged %t, %s", kind.Kind, res.Allowed, res.Unchanged, res.Message)
		}
	}
}

// A gated pod does not run yet: what removes the last gate starts it.
func TestAnUpdateThatLetsAPodStartIsRefused(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	gated := with(admittedPod(), func(p *corev1.Pod) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}, {Name: "b"}}
	})
	for name, c := range map[string]struct {
		gates   []corev1.PodSchedulingGate
		allowed bool
	}{
		"the last gate is removed":         {nil, false},
		"a gate is removed":                {gated.Spec.SchedulingGates[1:], false},
		"another pod waits and is left so": {gated.Spec.SchedulingGates, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := with(gated.DeepCopy(), func(p *corev1.Pod) { p.Finalizers, p.Spec.SchedulingGates = nil, c.gates })
			if res := r.Review(t.Context(), updateRequest(t, gated, after)); res.Allowed != c.allowed || res.Unchanged != c.allowed {
				t.Errorf("allowed %t, unchanged %t", res.Allowed, res.Unchanged)
			}
		})
	}
}

func TestAnUpdateIsJudgedInFullWithoutATrustworthyOldObject(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	deployment := strings.Replace(string(marshal(t, admittedPod())), `"kind":"Pod"`, `"kind":"Deployment"`, 1)
	for name, old := range map[string]string{
		"missing":                        "",
		"null":                           "null",
		"an empty object":                "{}",
		"not JSON":                       "{",
		"a string":                       `"Pod"`,
		"a Pod without the pipe":         string(marshal(t, testPod())),
		"a Pod that nobody would refuse": string(marshal(t, testPod(`C:\data`))),
		"an object of another kind":      deployment,
		"a Pod with two specs":           strings.Replace(string(marshal(t, admittedPod())), `"spec":`, `"spec":{},"spec":`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			req := updateRequest(t, nil, admittedPod())
			req.OldObject = runtime.RawExtension{Raw: []byte(old)}
			if res := r.Review(t.Context(), req); res.Allowed || res.Code != "PG001" {
				t.Errorf("allowed %t, %s", res.Allowed, res.Code)
			}
		})
	}
}

func TestOnlyAnUpdateOfThePodItselfCanBeUnchanged(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	req := updateRequest(t, admittedPod(), admittedPod())
	req.SubResource = "ephemeralcontainers"
	if res := r.Review(t.Context(), req); res.Allowed {
		t.Error("an update of ephemeralcontainers was admitted")
	}
	req = updateRequest(t, admittedPod(), admittedPod())
	req.Operation = admissionv1.Create
	if res := r.Review(t.Context(), req); res.Allowed {
		t.Error("a creation with an old object was admitted")
	}
}

func TestAnUnchangedUpdateIsStillRefusedIfThereIsNoDecision(t *testing.T) {
	engine := newEngine(t, DefaultParameters(), nil)
	broken := false
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = failing{engine, &broken} })
	req := updateRequest(t, admittedPod(), admittedPod())
	if res := r.Review(t.Context(), req); !res.Allowed {
		t.Fatalf("refused: %s", res.Message)
	}
	broken = true
	if res := r.Review(t.Context(), req); res.Allowed || res.Code != CodeFailure {
		t.Errorf("allowed %t, %s", res.Allowed, res.Code)
	}
}

func TestAnUpdateThatOnlyTakesAccessAwayIsJudgedAsItIs(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	less := testPod()
	if res := r.Review(t.Context(), updateRequest(t, admittedPod(), less)); !res.Allowed || res.Unchanged {
		t.Errorf("allowed %t, unchanged %t", res.Allowed, res.Unchanged)
	}
}

// failing is an engine that gives no decision while *broken.
type failing struct {
	*policy.Engine
	broken *bool
}

func (e failing) DecideAbout(ctx context.Context, s policy.Snapshot, sender turns.Sender, q policy.Question) (policy.Decision, error) {
	if *e.broken {
		return policy.Decision{}, &policy.Error{Reason: policy.ReasonTimeout, Err: context.DeadlineExceeded}
	}
	return e.Engine.DecideAbout(ctx, s, sender, q)
}
