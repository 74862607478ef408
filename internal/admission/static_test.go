package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestTheMirrorOfAStaticPodIsReportedAndNotRefused(t *testing.T) {
	kept := &ledger{}
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Audit = kept })
	_, answer := post(t, r, reviewBody(t, staticRequest(t, testPod(csiPipe))))
	if !answer.Allowed {
		t.Fatalf("refused: %s", answer.Result.Message)
	}
	want := map[string]string{"decision-id": "decision0", "revision": answer.AuditAnnotations["revision"], "effect": "warn", "codes": "PG001", "static-pod": "true"}
	if diff := cmp.Diff(want, answer.AuditAnnotations); diff != "" {
		t.Errorf("audit annotations (-want +got):\n%s", diff)
	}
	if len(answer.Warnings) != 1 || !strings.HasPrefix(answer.Warnings[0], `PG001: container "app": `) || !strings.HasSuffix(answer.Warnings[0], " (static pod)") {
		t.Errorf("warnings %q", answer.Warnings)
	}
	if len(kept.events) != 1 || kept.events[0].Decision.Reason != "static pod" || kept.events[0].Decision.Rule != "PG001" || kept.events[0].Outcome.Result != "ok" {
		t.Errorf("records %+v", kept.events)
	}
}

func TestAMirrorThatNobodyWouldRefuseIsAPodLikeOthers(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	if res := r.Review(t.Context(), staticRequest(t, testPod(`C:\data`))); !res.Allowed || res.Static || res.DecisionID != "" {
		t.Errorf("%+v", res)
	}
}

func TestOnlyANodeMakesMirrorsAndOnlyOfItsOwnPods(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	for name, change := range map[string]func(*admissionv1.AdmissionRequest, *corev1.Pod){
		"a user who writes the annotation": func(q *admissionv1.AdmissionRequest, _ *corev1.Pod) {
			q.UserInfo.Username, q.UserInfo.Groups = "jane", []string{"system:authenticated"}
		},
		"a user of that name without the group": func(q *admissionv1.AdmissionRequest, _ *corev1.Pod) {
			q.UserInfo.Groups = []string{"system:authenticated"}
		},
		"a user of the group with another name": func(q *admissionv1.AdmissionRequest, _ *corev1.Pod) { q.UserInfo.Username = "node-1" },
		"another node":                          func(q *admissionv1.AdmissionRequest, _ *corev1.Pod) { q.UserInfo.Username = "system:node:node-2" },
		"a node whose name begins alike":        func(q *admissionv1.AdmissionRequest, _ *corev1.Pod) { q.UserInfo.Username = "system:node:node-10" },
		"a node for a pod on no node": func(q *admissionv1.AdmissionRequest, p *corev1.Pod) {
			q.UserInfo.Username, p.Spec.NodeName = "system:node:", ""
		},
		"a node without the annotation": func(_ *admissionv1.AdmissionRequest, p *corev1.Pod) { p.Annotations = nil },
		"a node with the annotation in another case": func(_ *admissionv1.AdmissionRequest, p *corev1.Pod) {
			p.Annotations = map[string]string{"kubernetes.io/Config.mirror": "0123"}
		},
		"a node with a label": func(_ *admissionv1.AdmissionRequest, p *corev1.Pod) {
			p.Labels, p.Annotations = p.Annotations, nil
		},
		"an update by the node":         func(q *admissionv1.AdmissionRequest, _ *corev1.Pod) { q.Operation = admissionv1.Update },
		"an ephemeral container of one": func(q *admissionv1.AdmissionRequest, _ *corev1.Pod) { q.SubResource = "ephemeralcontainers" },
	} {
		p := testPod(csiPipe)
		req := staticRequest(t, p)
		change(req, p)
		req.Object.Raw = marshal(t, p)
		if res := r.Review(t.Context(), req); res.Allowed || res.Static || res.AuditAnnotations[annotationStatic] != "" {
			t.Errorf("%s: allowed %t, static %t", name, res.Allowed, res.Static)
		}
	}
}

func TestNoOtherKindHasMirrors(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	p := testPod(csiPipe)
	user := staticRequest(t, p).UserInfo
	for _, kind := range holders() {
		if kind.Kind == "Pod" {
			continue
		}
		raw := strings.Replace(string(asKind(t, kind, p)), `"metadata":{`, `"metadata":{"annotations":{"`+mirrorAnnotation+`":"0123"},`, 1)
		req := requestFor(t, []byte(raw), nil)
		req.UserInfo = user
		if res := r.Review(t.Context(), req); res.Allowed || res.Static {
			t.Errorf("%s: allowed %t, static %t", kind.Kind, res.Allowed, res.Static)
		}
	}
}
