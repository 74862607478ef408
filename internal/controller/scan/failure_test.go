package scan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestListBeginsAgainWhenItsTokenHasExpired(t *testing.T) {
	a := newAPIServer(t)
	for n := range 10 {
		a.pod("default", fmt.Sprintf("p%d", n), "deny.PG001")
	}
	s, p := newScanner(t, a, func(o *Options) { o.pageSize = 3 })
	pages := 0
	a.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/pods") {
			return false
		}
		if pages++; pages == 3 {
			a.snapshots = map[string][]object{}           // as compaction does
			delete(a.kinds["/api/v1/pods"], "default/p1") // and in between one object went
		}
		return false
	}
	complete(t, s)
	got := a.reports()["default/pipeguard"]
	if got.Summary.Judged != 9 || got.Summary.Deny != 9 || len(got.Results) != 9 {
		t.Errorf("summary %+v with %d results; want each of the 9 remaining pods once", got.Summary, len(got.Results))
	}
	if n := p.judged.Load(); n != 6+9 {
		t.Errorf("judged %d objects, want the 6 before the list began again and then 9", n)
	}
}

func TestListThatAlwaysExpiresIsGivenUp(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "deny.PG001")
	s, _ := newScanner(t, a)
	a.fault = answering("GET /api/v1/pods?", -1, 410, metav1.StatusReasonExpired)
	incomplete(t, s)
	if got := a.reports(); len(got) > 0 {
		t.Errorf("reports = %v, want none without the pods", got)
	}
}

func TestPageThatFailsIsReadAgainAndCountedOnce(t *testing.T) {
	for name, fault := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"an internal error":  answering("GET /api/v1/pods?", 2, 500, metav1.StatusReasonInternalError),
		"a throttled answer": answering("GET /api/v1/pods?", 2, 429, metav1.StatusReasonTooManyRequests),
		"a time-out":         answering("continue=", 3, 504, metav1.StatusReasonTimeout),
		"half an answer": func() func(http.ResponseWriter, *http.Request) bool {
			n := 2
			return func(w http.ResponseWriter, r *http.Request) bool {
				if n == 0 || !strings.HasSuffix(r.URL.Path, "/pods") {
					return false
				}
				n--
				_, _ = w.Write([]byte(`{"metadata":{},"items":[{"metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"1","labels":{"mark":"deny.PG001"}}},`))
				return true
			}
		}(),
		"a page of something else": func() func(http.ResponseWriter, *http.Request) bool {
			n := 1
			return func(w http.ResponseWriter, r *http.Request) bool {
				if n == 0 || !strings.HasSuffix(r.URL.Path, "/pods") {
					return false
				}
				n--
				_, _ = w.Write([]byte("<html>"))
				return true
			}
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPIServer(t)
			a.pod("default", "a", "deny.PG001")
			a.pod("default", "b", "deny.PG001")
			a.fault = fault
			s, _ := newScanner(t, a, func(o *Options) { o.pageSize = 1 })
			complete(t, s)
			if got := a.reports()["default/pipeguard"]; got.Summary.Deny != 2 || len(got.Results) != 2 {
				t.Errorf("summary %+v with %d results, want 2", got.Summary, len(got.Results))
			}
			if metricsOf(t, s)["pipeguard_scan_errors_total"] == 0 {
				t.Error("the error was not counted")
			}
		})
	}
}

// An object that is too deep, for the webhook or for encoding/json, is one that cannot be judged, and not the end of the list.
func TestADeepObjectDoesNotEndTheList(t *testing.T) {
	for _, depth := range []int{200, 9_996} {
		a := newAPIServer(t)
		a.pod("default", "a", "deny.PG001")
		a.pod("default", "b", "", func(o object) {
			o.meta()["managedFields"] = []any{map[string]any{"fieldsV1": json.RawMessage(`{"f:x\"\\":` + strings.Repeat(`[{"}":`, depth/2) + "0" + strings.Repeat("}]", depth/2) + "}")}}
		})
		a.pod("default", "c", "deny.PG001")
		s, _ := newScanner(t, a)
		complete(t, s)
		if got := a.reports()["default/pipeguard"]; got.Summary.Deny != 2 || got.Summary.Judged+got.Summary.Error != 3 {
			t.Errorf("%d levels: %+v", depth, got.Summary)
		}
	}
}

func TestRefusedListIsNotTriedAgain(t *testing.T) {
	for _, status := range []int32{400, 401, 403, 404} {
		a := newAPIServer(t)
		s, _ := newScanner(t, a)
		a.fault = answering("GET /apis/batch/v1/jobs?", -1, status, "")
		incomplete(t, s)
		n := 0
		for _, r := range a.asked() {
			if strings.Contains(r, "/jobs") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("status %d: asked %d times, want once", status, n)
		}
	}
}

func TestReportStaysWhileAListCannotBeRead(t *testing.T) {
	for _, failing := range []string{
		"GET /api/v1/pods?", "GET /apis/apps/v1/deployments?", "GET /api/v1/podtemplates?",
		"GET /apis/pipeguard.dev/v1alpha1/pipereports?",
	} {
		t.Run(failing, func(t *testing.T) {
			a := newAPIServer(t)
			a.pod("default", "a", "deny.PG001.disks")
			a.put(judgedKinds()[9], "", "pv", marked("deny.PG007"))
			s, _ := newScanner(t, a)
			complete(t, s)
			before := a.reports()["default/pipeguard"]

			a.pod("default", "a", "")
			a.put(judgedKinds()[9], "", "pv")
			a.fault = answering(failing, -1, 503, metav1.StatusReasonServiceUnavailable)
			incomplete(t, s)
			after := a.reports()
			if d := cmp.Diff(before, after["default/pipeguard"]); d != "" {
				t.Errorf("the report changed (-before +after):\n%s", d)
			}
			if _, ok := after["/pipeguard"]; ok {
				t.Error("the report of PersistentVolumes, which could be listed, stayed")
			}

			a.fault = nil
			complete(t, s)
			if got := a.reports(); len(got) > 0 {
				t.Errorf("reports = %v after a complete pass, want none", got)
			}
		})
	}
}

func TestClusterReportStaysWhileVolumesCannotBeListed(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "deny.PG001")
	a.put(judgedKinds()[9], "", "pv", marked("deny.PG007"))
	s, _ := newScanner(t, a)
	complete(t, s)
	a.pod("default", "a", "")
	a.put(judgedKinds()[9], "", "pv")
	a.fault = answering("persistentvolumes", -1, 500, "")
	incomplete(t, s)
	reports := a.reports()
	if _, ok := reports["/pipeguard"]; !ok || len(reports) != 1 {
		t.Errorf("reports = %v, want that of PersistentVolumes alone", reports)
	}
}

func TestObjectThatFailsForTheMomentIsJudgedAgain(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "")
	s, p := newScanner(t, a)
	var n int
	p.judge = func(context.Context, []byte) (Judged, error) {
		if n++; n < 3 {
			return Judged{Revision: "sha256:1", Failure: "overload", Passing: true}, nil
		}
		return Judged{Revision: "sha256:1"}, nil
	}
	complete(t, s)
	if got := a.reports(); len(got) > 0 {
		t.Errorf("reports = %v, want none: the third attempt succeeded", got)
	}

	a.pod("default", "a", "")
	p.judge = func(context.Context, []byte) (Judged, error) {
		return Judged{Revision: "sha256:1", Failure: "overload", Passing: true}, nil
	}
	complete(t, s)
	if got := a.reports()["default/pipeguard"].Summary.Error; got != 1 {
		t.Errorf("errors = %d, want 1: no attempt succeeded", got)
	}
	p.judge = nil
	complete(t, s) // and nothing has changed in the cluster
	if got := a.reports(); len(got) > 0 {
		t.Errorf("reports = %v: a failure of the moment was kept", got)
	}
}

func TestPassWaitsOnlySoOftenForWhatCannotBeJudged(t *testing.T) {
	a := newAPIServer(t)
	for n := range 200 {
		a.pod("default", fmt.Sprint("p", n), "")
	}
	s, p := newScanner(t, a)
	p.judge = func(context.Context, []byte) (Judged, error) {
		return Judged{Revision: "sha256:1", Failure: "overload", Passing: true}, nil
	}
	complete(t, s)
	if got := p.judged.Load(); got != 200+patience {
		t.Errorf("judged %d times, want 200 objects and %d more attempts", got, patience)
	}
	if got := a.reports()["default/pipeguard"].Summary.Error; got != 200 {
		t.Errorf("errors = %d, want 200", got)
	}
}

func TestNothingIsReportedOfAPassThatIsStopped(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "deny.PG001")
	a.pod("default", "b", "deny.PG001")
	s, p := newScanner(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	p.judge = func(ctx context.Context, _ []byte) (Judged, error) {
		cancel()
		return Judged{Revision: "sha256:1", Failure: "the caller went away", Passing: true}, ctx.Err()
	}
	if _, err := s.pass(ctx, "sha256:1"); !errors.Is(err, context.Canceled) {
		t.Errorf("pass = %v, want that it was cancelled", err)
	}
	if got := a.reports(); len(got) > 0 {
		t.Errorf("reports = %v, want none", got)
	}
}

func TestObjectInTheWrongListMakesThePassIncomplete(t *testing.T) {
	a := newAPIServer(t)
	a.put(judgedKinds()[0], "", "pod-without-namespace")
	s, _ := newScanner(t, a)
	incomplete(t, s)
}

func TestObjectThatCannotBeJudgedIsReported(t *testing.T) {
	for _, c := range []struct{ err, want string }{
		{"read the object: \x1b[2J", "read the object: <U+001B>[2J"},
		{"", "there is no judgement"},
	} {
		a := newAPIServer(t)
		a.pod("default", "a", "")
		s, p := newScanner(t, a)
		p.judge = func(context.Context, []byte) (Judged, error) { return Judged{}, errors.New(c.err) }
		complete(t, s)
		got := a.reports()["default/pipeguard"]
		if got.Summary.Error != 1 || got.Summary.Judged != 0 || len(got.Results) != 1 ||
			got.Results[0].Effect != "error" || got.Results[0].Message != c.want {
			t.Errorf("%q: summary %+v, results %v", c.err, got.Summary, got.Results)
		}
	}
}

func TestReportThatCannotBeDeletedIsDeletedByTheNextPass(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "deny.PG001")
	s, _ := newScanner(t, a)
	complete(t, s)
	a.pod("default", "a", "")
	a.fault = answering("DELETE ", 1, 500, "")
	incomplete(t, s)
	complete(t, s)
	if got := a.reports(); len(got) > 0 {
		t.Errorf("reports = %v, want none", got)
	}
}
