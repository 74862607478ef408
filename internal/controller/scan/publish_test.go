package scan

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writes are those of the requests that change something.
func writes(requests []string) []string {
	var out []string
	for _, r := range requests {
		if !strings.HasPrefix(r, "GET ") {
			out = append(out, r)
		}
	}
	return out
}

const defaultReports = "/apis/pipeguard.dev/v1alpha1/namespaces/default/pipereports"

func TestReportIsWrittenOnlyWhenItsContentChanges(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "deny.PG001")
	now := clock
	s, _ := newScanner(t, a, func(o *Options) { o.Now = func() time.Time { return now } })
	complete(t, s)
	for _, c := range []struct {
		name   string
		change func()
		want   []string
	}{
		{"nothing happens", func() {}, nil},
		{"the pod changes, its findings do not", func() { a.pod("default", "a", "deny.PG001") }, nil},
		{"everything is judged again with the same result", func() { now = now.Add(2 * time.Hour) }, nil},
		{"a pod without findings comes: one more is judged", func() { a.pod("default", "b", "") }, []string{"PUT " + defaultReports + "/pipeguard"}},
		{"a finding comes", func() { a.pod("default", "b", "warn.PG004") }, []string{"PUT " + defaultReports + "/pipeguard"}},
		{"someone deletes the report", func() { a.remove(reportKind(), "default", "pipeguard") }, []string{"POST " + defaultReports}},
		{"someone empties the report", func() {
			a.put(reportKind(), "default", "pipeguard", func(o object) {
				o.meta()["labels"] = map[string]any{managedByLabel: "pipeguard"}
			})
		}, []string{"PUT " + defaultReports + "/pipeguard"}},
		{"the findings go", func() { a.pod("default", "a", ""); a.pod("default", "b", "") }, []string{"DELETE " + defaultReports + "/pipeguard"}},
		{"nothing happens after that", func() {}, nil},
	} {
		a.asked()
		now = now.Add(time.Minute)
		c.change()
		complete(t, s)
		if d := cmp.Diff(c.want, writes(a.asked())); d != "" {
			t.Errorf("%s: writes (-want +got):\n%s", c.name, d)
		}
		if r, ok := a.reports()["default/pipeguard"]; ok && c.want != nil && !r.ScannedAt.Time.Equal(now) {
			t.Errorf("%s: scannedAt is %v, want %v", c.name, r.ScannedAt, now)
		}
	}
}

func TestNewLeaderKeepsAReportThatIsRight(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "deny.PG001")
	a.namespace("other")
	a.pod("other", "a", "deny.PG001")
	first, _ := newScanner(t, a)
	complete(t, first)
	a.pod("other", "a", "")
	a.asked()
	second, _ := newScanner(t, a, func(o *Options) { o.Now = func() time.Time { return clock.Add(time.Hour) } })
	complete(t, second)
	want := []string{"DELETE /apis/pipeguard.dev/v1alpha1/namespaces/other/pipereports/pipeguard"}
	if d := cmp.Diff(want, writes(a.asked())); d != "" {
		t.Errorf("writes (-want +got):\n%s", d)
	}
}

func TestReportIsDividedAndStalePartsGo(t *testing.T) {
	a := newAPIServer(t)
	for n := range maxResults + 1 {
		a.pod("default", fmt.Sprintf("p%05d", n), "deny.PG001")
	}
	s, _ := newScanner(t, a)
	complete(t, s)
	reports := a.reports()
	if d := cmp.Diff([]string{"default/pipeguard", "default/pipeguard-2"}, slices.Sorted(maps.Keys(reports))); d != "" {
		t.Fatalf("parts (-want +got):\n%s", d)
	}
	names := map[string]bool{}
	for key, r := range reports {
		for _, result := range r.Results {
			names[result.Subject.Name] = true
		}
		if r.Summary.Deny != maxResults+1 {
			t.Errorf("%s: the summary counts %d, want all", key, r.Summary.Deny)
		}
	}
	if len(names) != maxResults+1 {
		t.Errorf("%d of %d pods are in the parts", len(names), maxResults+1)
	}
	if r := reports["default/pipeguard-2"]; r.Part != "2/2" || len(r.Results) != 1 || r.Results[0].Subject.Name != "p01000" {
		t.Errorf("the last part is %s with %v", r.Part, r.Results)
	}
	// What only looks like a part, or is someone else's, is not ours to delete.
	label := func(o object) { o.meta()["labels"] = map[string]any{managedByLabel: "pipeguard"} }
	others := []string{"pipeguard-1", "pipeguard-03", "pipeguard-x", "pipeguard-", "pipeguard-4x", "web"}
	for _, name := range others {
		a.put(reportKind(), "default", name, label)
	}
	a.put(reportKind(), "default", "pipeguard-5")
	for n := 1; n < maxResults+1; n++ {
		a.remove(judgedKinds()[0], "default", fmt.Sprintf("p%05d", n))
	}
	complete(t, s)
	want := []string{"default/pipeguard", "default/pipeguard-5"}
	for _, name := range others {
		want = append(want, "default/"+name)
	}
	slices.Sort(want)
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(a.reports()))); d != "" {
		t.Errorf("what is left (-want +got):\n%s", d)
	}
	if r := a.reports()["default/pipeguard"]; r.Part != "1/1" || r.Summary.Deny != 1 {
		t.Errorf("the part that is left is %s with %+v", r.Part, r.Summary)
	}
}

func TestReportOfSomeoneElseIsNotTouched(t *testing.T) {
	for name, labels := range map[string]map[string]any{
		"without labels":     nil,
		"with another label": {managedByLabel: "helm"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPIServer(t)
			foreign := func(o object) {
				o["source"] = "theirs"
				if labels != nil {
					o.meta()["labels"] = labels
				}
			}
			a.put(reportKind(), "default", "pipeguard", foreign)
			a.put(clusterReportKind(), "", "pipeguard", foreign)
			a.pod("default", "a", "deny.PG001")
			a.namespace("other")
			a.pod("other", "a", "deny.PG001")
			before := a.reports()
			s, _ := newScanner(t, a)
			complete(t, s) // a tenant that may create reports does not keep the scan from its end
			after := a.reports()
			for _, key := range []string{"default/pipeguard", "/pipeguard"} {
				if d := cmp.Diff(before[key], after[key]); d != "" {
					t.Errorf("%s changed:\n%s", key, d)
				}
			}
			if _, ok := after["other/pipeguard"]; !ok {
				t.Error("the other namespace has no report")
			}
			if got := writes(a.asked()); len(got) != 1 {
				t.Errorf("writes = %q, want that of the other namespace", got)
			}
		})
	}
}

func TestNamespaceThatGoesIsNoError(t *testing.T) {
	for name, fault := range map[string]func(w http.ResponseWriter){
		"it is terminating": func(w http.ResponseWriter) {
			writeStatus(w, 403, metav1.StatusReasonForbidden, &metav1.StatusDetails{
				Causes: []metav1.StatusCause{{Type: "NamespaceTerminating"}},
			})
		},
		"it is gone": func(w http.ResponseWriter) {
			writeStatus(w, 404, metav1.StatusReasonNotFound, &metav1.StatusDetails{Kind: "namespaces", Name: "default"})
		},
	} {
		a := newAPIServer(t)
		a.pod("default", "a", "deny.PG001.disks")
		a.fault = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				fault(w)
			}
			return r.Method == http.MethodPost
		}
		s, _ := newScanner(t, a)
		if ok, err := s.pass(t.Context(), "sha256:1"); !ok || err != nil {
			t.Errorf("%s: pass = %v, %v", name, ok, err)
		}
		if n, ok := s.Violations("disks"); n != 1 || !ok {
			t.Errorf("%s: violations = %d, %v; want 1: the pod still runs", name, n, ok)
		}
	}
}

func TestReportThatCannotBeWrittenIsWrittenByTheNextPass(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  func(http.ResponseWriter, *http.Request) bool
		passes bool
	}{
		{"a refusal", answering("POST ", 1, 403, metav1.StatusReasonForbidden), false},
		{"an invalid object", answering("POST ", 1, 422, metav1.StatusReasonInvalid), false},
		{"an internal error", answering("POST ", 1, 500, metav1.StatusReasonInternalError), false},
	} {
		a := newAPIServer(t)
		a.pod("default", "a", "deny.PG001.disks")
		a.fault = c.fault
		s, _ := newScanner(t, a)
		incomplete(t, s)
		if n, ok := s.Violations("disks"); n != 1 || !ok {
			t.Errorf("%s: violations = %d, %v; want 1: all was judged", c.name, n, ok)
		}
		complete(t, s)
		if _, ok := a.reports()["default/pipeguard"]; !ok {
			t.Errorf("%s: no report", c.name)
		}
	}
}

func TestConflictIsResolvedFromWhatIsThere(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "deny.PG001")
	s, _ := newScanner(t, a)
	complete(t, s)
	a.pod("default", "a", "deny.PG002")
	a.fault = answering("PUT ", 2, 409, metav1.StatusReasonConflict)
	complete(t, s)
	if got := a.reports()["default/pipeguard"].Results[0].Rule; got != "PG002" {
		t.Errorf("rule = %s", got)
	}
	a.pod("default", "a", "deny.PG003")
	a.fault = answering("PUT ", putAttempts, 409, metav1.StatusReasonConflict)
	incomplete(t, s)
	complete(t, s)
}

func TestUpdateKeepsWhatOthersWroteIntoTheMetadata(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "deny.PG001")
	s, _ := newScanner(t, a)
	complete(t, s)
	a.mu.Lock()
	o := a.kinds["/apis/pipeguard.dev/v1alpha1/pipereports"]["default/pipeguard"]
	o.meta()["annotations"] = map[string]any{"note": "kept"}
	a.mu.Unlock()
	a.pod("default", "a", "deny.PG002")
	complete(t, s)
	got := a.reports()["default/pipeguard"]
	if got.Annotations["note"] != "kept" || got.Results[0].Rule != "PG002" {
		t.Errorf("annotations %v, results %v", got.Annotations, got.Results)
	}
}
