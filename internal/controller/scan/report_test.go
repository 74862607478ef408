package scan

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

func results(n int, message string) []v1alpha1.ReportResult {
	out := make([]v1alpha1.ReportResult, n)
	for i := range out {
		out[i] = v1alpha1.ReportResult{Rule: "PG001", Effect: "deny", Message: message, Subject: v1alpha1.ReportSubject{Name: fmt.Sprintf("p%06d", i)}}
	}
	return out
}

func TestPartsAreBoundedAndHoldEverythingOnce(t *testing.T) {
	for _, c := range []struct {
		name    string
		results []v1alpha1.ReportResult
		parts   int
	}{
		{"nothing", nil, 0},
		{"one", results(1, "m"), 1},
		{"as many as fit", results(maxResults, "m"), 1},
		{"one more", results(maxResults+1, "m"), 2},
		{"many", results(10*maxResults, "m"), 10},
		{"long messages", results(2000, strings.Repeat("x", maxMessage)), 3},
		{"messages that JSON makes six times longer", results(1000, strings.Repeat("<", maxMessage)), 8},
		{"a result that is too large alone", results(3, strings.Repeat("x", maxBytes)), 3},
	} {
		parts, err := divide("sha256:1", v1alpha1.ReportSummary{Deny: 1}, c.results)
		if err != nil {
			t.Fatal(err)
		}
		if len(parts) != c.parts {
			t.Errorf("%s: %d parts, want %d", c.name, len(parts), c.parts)
		}
		var all []v1alpha1.ReportResult
		for i, p := range parts {
			if want := fmt.Sprintf("%d/%d", i+1, len(parts)); p.Part != want {
				t.Errorf("%s: part %s, want %s", c.name, p.Part, want)
			}
			text, err := json.Marshal(p)
			if err != nil || len(p.Results) > maxResults || len(p.Results) > 1 && len(text) > maxBytes+1024 {
				t.Errorf("%s: part %d has %d results in %d bytes, %v", c.name, i, len(p.Results), len(text), err)
			}
			all = append(all, p.Results...)
		}
		if d := cmp.Diff(c.results, all); d != "" {
			t.Errorf("%s: results (-given +in the parts):\n%.500s", c.name, d)
		}
	}
}

func TestPartNamesAreRecognisedOnlyAsWritten(t *testing.T) {
	for i := range 30 {
		name := partName(i)
		if !isStale(name, i) || isStale(name, i+1) {
			t.Errorf("%s: stale with %d parts: %v, with %d: %v", name, i, isStale(name, i), i+1, isStale(name, i+1))
		}
	}
	for _, name := range []string{"", "pipeguard-", "pipeguard-0", "pipeguard-1", "pipeguard-02", "pipeguard--2", "pipeguard-2a", "pipeguard2", "Pipeguard", "x-pipeguard-2", "pipeguard-+2"} {
		if isStale(name, 0) {
			t.Errorf("%q is taken for a part", name)
		}
	}
}

func TestReportDoesNotDependOnTheOrderOfWork(t *testing.T) {
	a, b := newAPIServer(t), newAPIServer(t)
	r := rand.New(rand.NewPCG(3, 4))
	var names []string
	for n := range 40 {
		names = append(names, fmt.Sprintf("p%02d", n))
	}
	marks := []string{"deny.PG010.b-a_warn.PG004", "audit.PG008", "fail", "warn.PG004", ""}
	for i, name := range names {
		for _, k := range []kind{judgedKinds()[0], judgedKinds()[2], judgedKinds()[7]} {
			a.put(k, "default", name, marked(marks[i%len(marks)]))
		}
	}
	// The other server has the same after several passes, in another order.
	s, _ := newScanner(t, a)
	complete(t, s)
	other, _ := newScanner(t, b, func(o *Options) { o.pageSize = 7 })
	for _, i := range r.Perm(len(names)) {
		for _, k := range []kind{judgedKinds()[7], judgedKinds()[2], judgedKinds()[0]} {
			b.put(k, "default", names[i], marked(marks[i%len(marks)]))
		}
		if i%8 == 0 {
			complete(t, other)
		}
	}
	complete(t, other)
	got, want := b.reports()["default/pipeguard"], a.reports()["default/pipeguard"]
	if d := cmp.Diff(want.Report, got.Report); d != "" {
		t.Errorf("reports differ:\n%s", d)
	}
	if !slices.IsSortedFunc(got.Results, compareResults) || len(got.Results) < 90 {
		t.Errorf("%d results, sorted: %v", len(got.Results), slices.IsSortedFunc(got.Results, compareResults))
	}
}
