package admission

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// templatePaths are where each kind has its template of pods.
var templatePaths = map[string]string{
	"PodTemplate": "template", "ReplicationController": "spec.template", "Deployment": "spec.template", "DaemonSet": "spec.template",
	"StatefulSet": "spec.template", "ReplicaSet": "spec.template", "Job": "spec.template", "CronJob": "spec.jobTemplate.spec.template",
}

// inTemplate is an object of a kind whose template makes pods like p.
func inTemplate(t testing.TB, kind metav1.GroupVersionKind, p *corev1.Pod) []byte {
	t.Helper()
	var inner any = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: p.Annotations, Labels: p.Labels}, Spec: p.Spec}
	keys := strings.Split(templatePaths[kind.Kind], ".")
	for i := len(keys) - 1; i >= 0; i-- {
		inner = map[string]any{keys[i]: inner}
	}
	object := inner.(map[string]any)
	object["apiVersion"], object["kind"] = apiVersionOf(kind), kind.Kind
	object["metadata"] = metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID, Finalizers: p.Finalizers}
	return marshal(t, object)
}

// testVolume is a PersistentVolume that leads to path.
func testVolume(path string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: "data", UID: "volume-uid"},
		Spec:       corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}},
	}
}

// requestFor is the request that creates an object of any kind, or makes it of old.
func requestFor(t testing.TB, raw, old []byte) *admissionv1.AdmissionRequest {
	t.Helper()
	req, err := ObjectReview(raw)
	if err != nil {
		t.Fatal(err)
	}
	req.UID = "review-uid"
	req.UserInfo = authenticationv1.UserInfo{Username: "jane", Groups: []string{"devs", "system:authenticated"}}
	if old != nil {
		req.Operation = admissionv1.Update
		req.OldObject = runtime.RawExtension{Raw: old}
	}
	return req
}

// staticRequest creates the mirror of a static pod at the hands of its node.
func staticRequest(t testing.TB, p *corev1.Pod) *admissionv1.AdmissionRequest {
	t.Helper()
	p.Annotations = map[string]string{mirrorAnnotation: "0123"}
	p.Spec.NodeName = "node-1"
	req := createRequest(t, p)
	req.UserInfo = authenticationv1.UserInfo{Username: "system:node:node-1", Groups: []string{"system:nodes", "system:authenticated"}}
	return req
}

// overlapping is policies of which several govern pipes that overlap.
func overlapping() Policies {
	return Policies{
		Parameters: DefaultParameters(),
		PipePolicies: map[string]PipePolicy{
			"exact":   {Pipes: []string{"CSI-Proxy-filesystem-v1", "csi-proxy-filesystem-v1"}},
			"disk":    {Pipes: []string{"csi-proxy-d*", "docker_*"}, Action: ActionAudit},
			"storage": {Pipes: []string{"csi-*"}, Action: ActionWarn},
		},
	}
}

func TestObjectReviewIsWhatTheAPIServerWouldSend(t *testing.T) {
	for _, kind := range Kinds() {
		var raw []byte
		switch kind.Kind {
		case "Pod":
			raw = marshal(t, in("", "builder", testPod(csiPipe)))
		case "PersistentVolume":
			raw = marshal(t, testVolume(csiPipe))
		default:
			raw = inTemplate(t, kind, in("", "builder", testPod(csiPipe)))
		}
		req, err := ObjectReview(raw)
		if err != nil {
			t.Fatal(err)
		}
		namespace := "default"
		if kind.Kind == "PersistentVolume" {
			namespace = ""
		}
		if req.Kind != kind || req.Namespace != namespace || req.Operation != admissionv1.Create || string(req.Object.Raw) != string(raw) {
			t.Errorf("%s: %+v", kind, req)
		}
		if want := strings.ToLower(kind.Kind) + "s"; req.Resource.Resource != want || req.Resource.Group != kind.Group {
			t.Errorf("%s: resource %v", kind, req.Resource)
		}
		again, err := ObjectReview(raw)
		if err != nil || again.UID != req.UID || req.UID == "" {
			t.Errorf("%s: uid %q and then %q", kind, req.UID, again.UID)
		}
	}
}

func TestObjectReviewRefusesWhatIsNotJudged(t *testing.T) {
	for name, raw := range map[string]string{
		"nothing":                "",
		"null":                   "null",
		"a list":                 "[]",
		"no kind":                "{}",
		"a kind that is unknown": `{"apiVersion":"example.com/v1","kind":"Pod"}`,
		"a Service":              `{"apiVersion":"v1","kind":"Service"}`,
		"a List":                 `{"apiVersion":"v1","kind":"List","items":[]}`,
		"another version":        `{"apiVersion":"batch/v1beta1","kind":"CronJob"}`,
		"a group of three parts": `{"apiVersion":"a/b/c","kind":"Pod"}`,
		"two kinds":              `{"apiVersion":"v1","kind":"Service","kind":"Pod"}`,
		"two specs":              `{"apiVersion":"v1","kind":"Pod","spec":{},"spec":{}}`,
		"something behind it":    `{"apiVersion":"v1","kind":"Pod"} {}`,
		"two templates":          `{"apiVersion":"v1","kind":"PodTemplate","template":{},"template":{}}`,
	} {
		if req, err := ObjectReview([]byte(raw)); err == nil {
			t.Errorf("%s: %+v", name, req)
		}
	}
}

func TestAnObjectWithoutTemplateHasNoContainers(t *testing.T) {
	scope := testScope(t, overlapping())
	for _, kind := range Kinds() {
		for _, rest := range []string{``, `,"spec":null`, `,"template":null`, `,"spec":{}`, `,"spec":{"template":null}`, `,"spec":{"jobTemplate":{"spec":{"template":{"spec":null}}}}`} {
			raw := `{"apiVersion":"` + apiVersionOf(kind) + `","kind":"` + kind.Kind + `"` + rest + `}`
			if !json.Valid([]byte(raw)) {
				t.Fatal(raw)
			}
			obj, err := readObject([]byte(raw), kind, plenty())
			if err != nil {
				t.Errorf("%s: %v", raw, err)
				continue
			}
			e, err := extract(scope, &obj, plenty())
			if err != nil || len(e.containers) > 0 || isRelevant(&e, obj.podMeta()) {
				t.Errorf("%s: %+v, %v", raw, e, err)
			}
			if want := map[bool]string{true: "default", false: ""}[kind.Kind != "PersistentVolume"]; obj.pod.serviceAccount != want {
				t.Errorf("%s: service account %q", raw, obj.pod.serviceAccount)
			}
		}
	}
}
