package scan

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// What the other tests do in memory holds over a network, where answers are compressed, streamed and cut off.
func TestPassOverANetworkThatBreaks(t *testing.T) {
	a := newAPIServer(t)
	for n := range 300 {
		a.pod("default", fmt.Sprintf("p%03d", n), "deny.PG001.disks")
	}
	broken := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/pods") {
			a.ServeHTTP(w, r)
			return
		}
		recorded := httptest.NewRecorder()
		a.ServeHTTP(recorded, r)
		if broken++; broken%2 == 0 {
			_, _ = w.Write(recorded.Body.Bytes())
			return
		}
		_, _ = w.Write(recorded.Body.Bytes()[:recorded.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // as the API server does when its time-out ends a list
	}))
	defer server.Close()
	s, _ := newScanner(t, a, func(o *Options) {
		o.Config, o.pageSize = &rest.Config{Host: server.URL}, 70
	})
	complete(t, s)
	report := a.reports()["default/pipeguard"]
	names := map[string]bool{}
	for _, r := range report.Results {
		names[r.Subject.Name] = true
	}
	if len(names) != 300 || len(report.Results) != 300 || report.Summary.Judged != 300 {
		t.Errorf("%d results about %d pods, summary %+v; want each of 300 once", len(report.Results), len(names), report.Summary)
	}
	if n, ok := s.Violations("disks"); n != 300 || !ok {
		t.Errorf("violations = %d, %v", n, ok)
	}
}
