package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/policies"
)

var podKind = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}

// clock is what the reviewers of tests think the time is.
var clock = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// plenty is what any review may take.
func plenty() *jsonscan.Allowance { return jsonscan.Allow(heavyReview) }

// allowing is DefaultParameters with the azuredisk driver allowed in kube-system.
func allowing() Parameters {
	p := DefaultParameters()
	p.AllowedNamespaces = map[string]Subjects{"kube-system": {ServiceAccounts: []string{"csi-azuredisk-node-sa"}}}
	return p
}

// engines keeps the engines of the default policy by what they decide with: activating one runs its tests.
var engines sync.Map

func newEngine(t testing.TB, p Parameters, files map[string]string) *policy.Engine {
	t.Helper()
	return newPolicyEngine(t, Policies{Parameters: p}, files)
}

func newPolicyEngine(t testing.TB, p Policies, files map[string]string) *policy.Engine {
	t.Helper()
	key := string(marshal(t, p))
	if engine, ok := engines.Load(key); ok && files == nil {
		return engine.(*policy.Engine)
	}
	modules := fewTests(t)
	maps.Copy(modules.Files, files)
	engine := newIdleEngine(t)
	if _, err := engine.Activate(t.Context(), bound(t, p, modules)); err != nil {
		t.Fatal(err)
	}
	if files == nil {
		engines.Store(key, engine)
	}
	return engine
}

func newIdleEngine(t testing.TB) *policy.Engine {
	t.Helper()
	engine, err := policy.New(policy.Options{Timeout: 10 * time.Second, TestTimeout: 5 * time.Minute, Remember: 100}) // a slow machine is not what is tested
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func defaultModules(t testing.TB) policy.Modules {
	t.Helper()
	modules, err := policy.LoadFS(policies.FS())
	if err != nil {
		t.Fatal(err)
	}
	return modules
}

// fewTests is the default policy without most of its tests, which take most of an activation's time. They are run
// where the policy is.
func fewTests(t testing.TB) policy.Modules {
	t.Helper()
	modules := defaultModules(t)
	maps.DeleteFunc(modules.Files, func(name, _ string) bool {
		return strings.HasSuffix(name, "_test.rego") && name != "decision_test.rego" && name != "fixtures_test.rego"
	})
	return modules
}

func bound(t testing.TB, p Policies, modules policy.Modules) policy.Modules {
	t.Helper()
	modules, err := p.Bind(modules)
	if err != nil {
		t.Fatal(err)
	}
	return modules
}

func testScope(t testing.TB, p Policies) *Scope {
	t.Helper()
	scope, err := p.scope(p.pipePolicies())
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// scopeIn is the scope that a reviewer's engine decides with.
func scopeIn(t testing.TB, r *Reviewer) *Scope {
	t.Helper()
	snapshot, ok := r.o.Engine.Active()
	if !ok {
		t.Fatal("nothing is active")
	}
	return scopeOf(snapshot)
}

func newReviewer(t testing.TB, p Parameters, change ...func(*ReviewerOptions)) *Reviewer {
	t.Helper()
	o := ReviewerOptions{
		Now:   func() time.Time { return clock },
		NewID: func() string { return "decision0" },
	}
	for _, c := range change {
		c(&o)
	}
	if o.Engine == nil {
		o.Engine = newEngine(t, p, nil)
	}
	r, err := NewReviewer(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// testPod is a Pod in namespace "team-a" whose one container mounts the given host paths.
func testPod(paths ...string) *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "team-a", UID: "pod-uid"},
		Spec:       corev1.PodSpec{ServiceAccountName: "builder", Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}}},
	}
	for i, path := range paths {
		name := "v" + string(rune('0'+i))
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}})
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: `C:\mnt\` + name})
	}
	return p
}

func createRequest(t testing.TB, pod *corev1.Pod) *admissionv1.AdmissionRequest {
	t.Helper()
	return &admissionv1.AdmissionRequest{
		UID:       "review-uid",
		Kind:      podKind,
		Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Name:      pod.Name,
		Namespace: pod.Namespace,
		Operation: admissionv1.Create,
		UserInfo:  authenticationv1.UserInfo{Username: "jane", Groups: []string{"devs", "system:authenticated"}},
		Object:    runtime.RawExtension{Raw: marshal(t, pod)},
	}
}

func updateRequest(t testing.TB, old, pod *corev1.Pod) *admissionv1.AdmissionRequest {
	t.Helper()
	req := createRequest(t, pod)
	req.Operation = admissionv1.Update
	if old != nil {
		req.OldObject = runtime.RawExtension{Raw: marshal(t, old)}
	}
	return req
}

func reviewBody(t testing.TB, req *admissionv1.AdmissionRequest) []byte {
	t.Helper()
	return marshal(t, admissionv1.AdmissionReview{TypeMeta: reviewType, Request: req})
}

// post sends body through the whole handler. answer is nil unless the status is 200.
func post(t testing.TB, h http.Handler, body []byte) (status int, answer *admissionv1.AdmissionResponse) {
	t.Helper()
	req := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/", bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if w.Code != http.StatusOK {
		return w.Code, nil
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil {
		t.Fatalf("answer %q: %v", w.Body, err)
	}
	if review.TypeMeta != reviewType || review.Response == nil {
		t.Fatalf("answer %q is not an AdmissionReview with a response", w.Body)
	}
	return w.Code, review.Response
}
