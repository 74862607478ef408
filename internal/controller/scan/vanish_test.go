package scan

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
)

func TestObjectsThatVanishBetweenMetadataAndJudgementAreNotReported(t *testing.T) {
	a := newAPIServer(t)
	for _, n := range []string{"n1", "n2", "n3", "n4"} {
		a.namespace(n)
		a.pod(n, "a", "")
	}
	s, _ := newScanner(t, a)
	complete(t, s)
	a.pod("n1", "a", "deny.PG001")
	a.fault = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/namespaces/n1/pods") {
			delete(a.kinds["/api/v1/pods"], "n1/a")
		}
		return false
	}
	complete(t, s)
	if got := a.reports(); len(got) > 0 {
		t.Errorf("reports = %v, want none", got)
	}
	if slots := s.state.kinds["pods"].slots; len(slots) != 3 {
		t.Errorf("%d namespaces with pods are known, want 3", len(slots))
	}
}

func TestObjectThatChangesBetweenMetadataAndJudgementIsJudgedAsItIs(t *testing.T) {
	a := newAPIServer(t)
	for _, n := range []string{"n1", "n2", "n3", "n4"} {
		a.namespace(n)
		a.pod(n, "a", "")
	}
	s, p := newScanner(t, a)
	complete(t, s)
	a.pod("n1", "a", "deny.PG001")
	a.fault = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/namespaces/n1/pods") {
			o := a.kinds["/api/v1/pods"]["n1/a"]
			marked("deny.PG002")(o)
			a.store("/api/v1/pods", o)
		}
		return false
	}
	complete(t, s)
	if got := a.reports()["n1/pipeguard"].Results; len(got) != 1 || got[0].Rule != "PG002" {
		t.Errorf("results = %v, want PG002", got)
	}
	// What is remembered is what was judged, so that nothing is left for the next pass.
	a.fault = nil
	before := p.judged.Load()
	complete(t, s)
	if n := p.judged.Load() - before; n != 0 {
		t.Errorf("%d objects were judged once more", n)
	}
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
