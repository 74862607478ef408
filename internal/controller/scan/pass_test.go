package scan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

func TestEveryJudgedKindIsListed(t *testing.T) {
	var listed []metav1.GroupVersionKind
	for _, k := range judgedKinds() {
		listed = append(listed, metav1.GroupVersionKind{Group: k.gvk.Group, Version: k.gvk.Version, Kind: k.gvk.Kind})
	}
	byName := func(a, b metav1.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }
	slices.SortFunc(listed, byName)
	want := slices.SortedFunc(slices.Values(admission.Kinds()), byName)
	if d := cmp.Diff(want, listed); d != "" {
		t.Errorf("listed kinds (-judged by admission +listed here):\n%s", d)
	}
}

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

func TestOnlyNamespacesThatChangedAreJudgedAgain(t *testing.T) {
	a := newAPIServer(t)
	for n := range 6 {
		name := fmt.Sprintf("n%d", n)
		a.namespace(name)
		a.pod(name, "a", "")
		a.pod(name, "b", "")
	}
	deployment := judgedKinds()[2]
	a.put(deployment, "n1", "d")
	a.put(judgedKinds()[9], "", "pv")
	now := clock
	s, p := newScanner(t, a, func(o *Options) { o.Now = func() time.Time { return now } })
	names := judgedNames(p)
	complete(t, s)
	if got := names(); len(got) != 14 {
		t.Fatalf("the first pass judged %q, want all 14", got)
	}
	for _, c := range []struct {
		name   string
		change func()
		want   []string
	}{
		{"nothing", func() {}, nil},
		{"a pod was written", func() { a.pod("n1", "a", "") }, []string{"Pod n1/a", "Pod n1/b"}},
		{"a pod was added", func() { a.pod("n2", "c", "") }, []string{"Pod n2/a", "Pod n2/b", "Pod n2/c"}},
		{"a pod was deleted", func() { a.remove(judgedKinds()[0], "n2", "c") }, []string{"Pod n2/a", "Pod n2/b"}},
		{"a deployment was written", func() { a.put(deployment, "n1", "d") }, []string{"Deployment n1/d"}},
		{"a volume was written", func() { a.put(judgedKinds()[9], "", "pv") }, []string{"PersistentVolume /pv"}},
		{"a pod was made anew", func() {
			a.pod("n3", "a", "", func(o object) { o.meta()["uid"] = "another" })
		}, []string{"Pod n3/a", "Pod n3/b"}},
		{"a namespace has other labels", func() { a.namespace("n1", marked("x")) }, []string{"Deployment n1/d", "Pod n1/a", "Pod n1/b"}},
		{"a namespace was written, with the same labels", func() { a.namespace("n1", marked("x")) }, nil},
		{"all that a namespace had was deleted", func() {
			a.remove(judgedKinds()[0], "n0", "a")
			a.remove(judgedKinds()[0], "n0", "b")
		}, nil},
		{"an hour went by", func() { now = now.Add(time.Hour) }, []string{
			"Deployment n1/d", "PersistentVolume /pv",
			"Pod n1/a", "Pod n1/b", "Pod n2/a", "Pod n2/b", "Pod n3/a", "Pod n3/b", "Pod n4/a", "Pod n4/b", "Pod n5/a", "Pod n5/b",
		}},
	} {
		c.change()
		complete(t, s)
		if d := cmp.Diff(c.want, names()); d != "" {
			t.Errorf("%s: judged (-want +got):\n%s", c.name, d)
		}
	}
}

func TestObjectsOfAnUnchangedClusterAreNotFetched(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "deny.PG001")
	s, _ := newScanner(t, a)
	complete(t, s)
	a.asked()
	complete(t, s)
	for _, r := range a.asked() {
		if !strings.HasPrefix(r, "GET ") || !strings.HasSuffix(r, " metadata") {
			t.Errorf("the second pass asks for %q; want metadata alone", r)
		}
	}
}

func TestAllIsJudgedAgainWhenAPermissionEnds(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "")
	now, end := clock, clock.Add(5*time.Minute)
	s, p := newScanner(t, a, func(o *Options) {
		o.Now = func() time.Time { return now }
		o.NextChange = func(after time.Time) (time.Time, bool) { return end, after.Before(end) }
	})
	names := judgedNames(p)
	complete(t, s)
	names()
	now = end.Add(-time.Second)
	complete(t, s)
	if got := names(); got != nil {
		t.Errorf("before the end, judged %q", got)
	}
	now = end
	complete(t, s)
	if d := cmp.Diff([]string{"Pod default/a"}, names()); d != "" {
		t.Errorf("at the end, judged (-want +got):\n%s", d)
	}
	now = end.Add(time.Minute)
	complete(t, s)
	if got := names(); got != nil {
		t.Errorf("after the end, judged %q once more", got)
	}
}

func TestNewRevisionJudgesAllAgain(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "deny.PG001")
	s, p := newScanner(t, a)
	complete(t, s)
	p.activate("sha256:2")
	before := p.judged.Load()
	complete(t, s)
	if p.judged.Load() == before {
		t.Error("nothing was judged")
	}
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
