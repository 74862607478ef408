package scan

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

func TestReportSaysWhatWasFoundInANamespace(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "web-1", "warn.PG004_deny.PG010.disks-volumes", func(o object) {
		o.meta()["ownerReferences"] = []any{
			map[string]any{"kind": "Thing", "name": "other"},
			map[string]any{"kind": "ReplicaSet", "name": "web", "controller": true},
		}
	})
	a.pod("default", "quiet", "")
	a.pod("default", "static", "audit.PG008", func(o object) {
		o.meta()["annotations"] = map[string]any{mirrorAnnotation: "x"}
	})
	a.pod("default", "unreadable", "fail")
	s, _ := newScanner(t, a)
	complete(t, s)

	subject := func(name string) v1alpha1.ReportSubject {
		return v1alpha1.ReportSubject{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: name, UID: "uid-default-" + "x"}
	}
	web, static, unreadable := subject("web-1"), subject("static"), subject("unreadable")
	web.UID, static.UID, unreadable.UID = "uid-default-web-1", "uid-default-static", "uid-default-unreadable"
	web.Controller = "ReplicaSet/web"
	want := v1alpha1.Report{
		Source: "pipeguard", Revision: "sha256:1", ScannedAt: metav1.Time{Time: clock}, Part: "1/1",
		Summary: v1alpha1.ReportSummary{Judged: 3, Deny: 1, Warn: 1, Audit: 1, Error: 1},
		Results: []v1alpha1.ReportResult{
			{Rule: "PG010", Effect: "deny", Severity: "high", Subject: web, Field: "spec.field[1]", Message: "a text", Policies: []string{"disks", "volumes"}},
			{Rule: "PG999", Effect: "error", Subject: unreadable, Message: "it cannot be read"},
			{Rule: "PG004", Effect: "warn", Severity: "high", Subject: web, Field: "spec.field[0]", Message: "a text"},
			{Rule: "PG008", Effect: "audit", Severity: "high", Subject: static, Field: "spec.field[0]", Message: "a text", StaticPod: true},
		},
	}
	got := a.reports()
	if len(got) != 1 {
		t.Fatalf("reports = %v, want one", got)
	}
	report := got["default/pipeguard"]
	if d := cmp.Diff(want, report.Report); d != "" {
		t.Errorf("report (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]string{managedByLabel: "pipeguard"}, report.Labels); d != "" {
		t.Errorf("labels (-want +got):\n%s", d)
	}
	if report.Kind != "PipeReport" || report.APIVersion != "pipeguard.dev/v1alpha1" {
		t.Errorf("type = %v", report.TypeMeta)
	}
}

func TestEveryKindIsJudgedAndReported(t *testing.T) {
	a := newAPIServer(t)
	for _, k := range judgedKinds() {
		namespace := ""
		if k.namespaced {
			namespace = "default"
		}
		a.put(k, namespace, "one", marked("deny.PG001"))
	}
	s, _ := newScanner(t, a)
	complete(t, s)
	reports := a.reports()
	var kinds []string
	for _, r := range append(reports["default/pipeguard"].Results, reports["/pipeguard"].Results...) {
		kinds = append(kinds, r.Subject.APIVersion+" "+r.Subject.Kind)
	}
	var want []string
	for _, k := range judgedKinds() {
		want = append(want, k.apiVersion()+" "+k.gvk.Kind)
	}
	slices.Sort(kinds)
	slices.Sort(want)
	if d := cmp.Diff(want, kinds); d != "" {
		t.Errorf("reported kinds (-want +got):\n%s", d)
	}
	if got := reports["/pipeguard"]; got.Kind != "ClusterPipeReport" || got.Results[0].Subject.Kind != "PersistentVolume" {
		t.Errorf("the report of PersistentVolumes is %v", got)
	}
}

// judgedNames tells which objects were judged in what follows.
func judgedNames(p *marker) func() []string {
	var names []string
	p.judge = func(_ context.Context, raw []byte) (Judged, error) {
		var o struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
		}
		if err := json.Unmarshal(raw, &o); err != nil {
			return Judged{}, err
		}
		names = append(names, o.Kind+" "+o.Metadata.Namespace+"/"+o.Metadata.Name)
		return Judged{Revision: p.Revision()}, nil
	}
	return func() []string {
		out := names
		names = nil
		slices.Sort(out)
		return out
	}
}

func TestEachPassJudgesEverything(t *testing.T) {
	a := newAPIServer(t)
	a.namespace("other")
	a.pod("default", "a", "")
	a.pod("other", "b", "")
	a.put(judgedKinds()[3], "other", "d")
	a.put(judgedKinds()[9], "", "pv")
	s, p := newScanner(t, a)
	names := judgedNames(p)
	want := []string{"Deployment other/d", "PersistentVolume /pv", "Pod default/a", "Pod other/b"}
	for range 2 {
		complete(t, s)
		if d := cmp.Diff(want, names()); d != "" {
			t.Errorf("judged (-want +got):\n%s", d)
		}
	}
}

func TestReportThatIsRightIsNotFetched(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "deny.PG001")
	s, _ := newScanner(t, a)
	complete(t, s)
	a.asked()
	complete(t, s)
	for _, r := range a.asked() {
		if !strings.HasPrefix(r, "GET ") || strings.Contains(r, "/pipereports") && !strings.HasSuffix(r, "/pipereports metadata") {
			t.Errorf("the second pass asks for %q; want lists, and of reports metadata alone", r)
		}
	}
}

func TestReportIsOfTheRevisionThatJudged(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "deny.PG001")
	s, p := newScanner(t, a)
	complete(t, s)
	p.activate("sha256:2")
	complete(t, s)
	if got := a.reports()["default/pipeguard"].Revision; got != "sha256:2" {
		t.Errorf("the report is of revision %s", got)
	}
}

func TestPassEndsWhenOtherPoliciesDecide(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "deny.PG001")
	a.pod("default", "b", "deny.PG001")
	s, p := newScanner(t, a)
	mark := p.Judge
	s.options.Judge = func(ctx context.Context, raw []byte) (Judged, error) {
		j, err := mark(ctx, raw)
		p.activate("sha256:2")
		return j, err
	}
	if _, err := s.pass(t.Context(), "sha256:1"); !errors.Is(err, errSuperseded) {
		t.Errorf("pass = %v, want errSuperseded", err)
	}
	if got := a.reports(); len(got) > 0 {
		t.Errorf("reports of two revisions at once: %v", got)
	}
	if _, ok := s.Violations("disks"); ok {
		t.Error("violations are known after half a pass")
	}
}
