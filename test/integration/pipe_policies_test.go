//go:build !windows

package integration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/routes"
)

const diskPipe = `\\.\pipe\csi-proxy-disk-v1`

func TestAPipePolicyDecidesOnceItIsReady(t *testing.T) {
	ungoverned(t)
	mine := namespace(t, "mine", driver)
	p := pipePolicy("disk", []v1alpha1.PipePattern{"CSI-Proxy-Disk-*"}, subject(mine))
	status := ready(t, p)
	if status.Replicas != (v1alpha1.ReplicaCounts{Live: 1, Current: 1, Summary: "1/1"}) || !strings.HasPrefix(status.Revision, "sha256:") {
		t.Errorf("status: %+v", status)
	}
	for _, kind := range []string{v1alpha1.ConditionCompiled, v1alpha1.ConditionTestsPassed, v1alpha1.ConditionPublished} {
		become(t, p, kind, metav1.ConditionTrue)
	}
	if p.Status.Subjects != (v1alpha1.SubjectCounts{Open: 1}) {
		t.Errorf("subjects: %+v", p.Status.Subjects)
	}
	happened(t, p, "Activated", status.Revision)

	created(t, pod(mine, driver, diskPipe))
	for name, o := range map[string]client.Object{
		"another service account":               pod(mine, "", diskPipe),
		"another namespace":                     pod(namespace(t, "others", driver), driver, diskPipe),
		"a namespace that the parameters allow": pod(drivers, driver, diskPipe),
	} {
		answer := refused(t, at(t).api.Client.Create(t.Context(), o), "PG010")
		if !strings.Contains(answer.Message, "policy "+status.Revision[:len("sha256:")+12]) {
			t.Errorf("%s: refused by another revision than %s:\n%s", name, status.Revision, answer.Message)
		}
	}
	// What it does not govern stays as it was.
	created(t, pod(drivers, driver, pipe))
	refused(t, at(t).api.Client.Create(t.Context(), pod(mine, driver, pipe)), "PG001")
}

func TestContainersAndImagesNarrowASubject(t *testing.T) {
	ungoverned(t)
	mine := namespace(t, "mine", driver)
	s := subject(mine)
	s.Containers, s.Images = []string{"app"}, []string{"example.com/app:*"}
	ready(t, pipePolicy("disk", []v1alpha1.PipePattern{"csi-proxy-disk-v1"}, s))
	created(t, pod(mine, driver, diskPipe))
	p := pod(mine, driver, diskPipe)
	p.Spec.Containers[0].Name = "other"
	refused(t, at(t).api.Client.Create(t.Context(), p), "PG010")
	p = pod(mine, driver, diskPipe)
	p.Spec.Containers[0].Image = "example.com/application:v1"
	refused(t, at(t).api.Client.Create(t.Context(), p), "PG010")
}

func TestActionsAreWhatTheySay(t *testing.T) {
	ungoverned(t)
	others := namespace(t, "others", driver)
	for action, pipes := range map[v1alpha1.AdmissionAction]v1alpha1.PipePattern{
		v1alpha1.ActionDeny: "mine-deny", v1alpha1.ActionWarn: "mine-warn", v1alpha1.ActionAudit: "mine-audit",
	} {
		p := pipePolicy(strings.ToLower(string(action)), []v1alpha1.PipePattern{pipes})
		p.Spec.Admission.Action = action
		ready(t, p)
	}
	admin, warned := warnings(t)
	refused(t, admin.Create(t.Context(), pod(others, "", `\\.\pipe\mine-deny`)), "PG010")
	if err := admin.Create(t.Context(), pod(others, "", `\\.\pipe\mine-audit`)); err != nil || len(warned.texts) != 0 {
		t.Errorf("audit: %v, warnings %q", err, warned.texts)
	}
	if err := admin.Create(t.Context(), pod(others, "", `\\.\pipe\mine-warn`)); err != nil || len(warned.texts) != 1 || !strings.HasPrefix(warned.texts[0], "PG010: ") {
		t.Errorf("warn: %v, warnings %q", err, warned.texts)
	}
	// A PersistentVolume has no subject, and follows the action.
	refused(t, admin.Create(t.Context(), volume(routes.Local(`\\.\pipe\mine-deny`))), "PG007")
	v := volume(routes.Local(`\\.\pipe\mine-warn`))
	deleted(t, v)
	if err := admin.Create(t.Context(), v); err != nil || len(warned.texts) != 2 {
		t.Errorf("a volume: %v, warnings %q", err, warned.texts)
	}
	// Two policies for one pipe: the stricter one counts.
	ready(t, pipePolicy("stricter", []v1alpha1.PipePattern{"mine-warn"}))
	refused(t, admin.Create(t.Context(), pod(others, "", `\\.\pipe\mine-warn`)), "PG010")
}

func TestDeletingAPolicyMeansTheDefaultAgain(t *testing.T) {
	ungoverned(t)
	mine := namespace(t, "mine", driver)
	p := pipePolicy("disk", []v1alpha1.PipePattern{"csi-proxy-disk-v1"}, subject(mine))
	ready(t, p)
	created(t, pod(mine, driver, diskPipe))
	if len(p.Finalizers) > 0 {
		t.Errorf("finalizers %q: a webhook that is gone would keep it", p.Finalizers)
	}
	if err := at(t).api.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	refusedSoon(t, func() client.Object { return pod(mine, driver, diskPipe) }, "PG001")
	created(t, pod(drivers, driver, diskPipe))
}
