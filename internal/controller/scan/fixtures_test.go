package scan

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// clock is what the scanners of tests think the time is at first.
var clock = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// marker stands for the policies that decide: their revision, and how an object's label "mark" is judged.
type marker struct {
	revision atomic.Pointer[string]
	// judge may judge instead of the mark.
	judge Judge
	// judged counts.
	judged atomic.Int64
}

func (p *marker) activate(revision string) { p.revision.Store(&revision) }

func (p *marker) Revision() string { return *p.revision.Load() }

// Judge understands marks such as "deny.PG010.disks_warn.PG004": findings with effect, code and policies, with _ between
// them.
func (p *marker) Judge(ctx context.Context, raw []byte) (Judged, error) {
	p.judged.Add(1)
	if p.judge != nil {
		return p.judge(ctx, raw)
	}
	var o struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return Judged{}, err
	}
	if o.Kind == "" || o.APIVersion == "" {
		return Judged{}, fmt.Errorf("an object without kind: %s", raw)
	}
	j := Judged{Revision: p.Revision()}
	for i, mark := range strings.Split(o.Labels["mark"], "_") {
		switch words := append(strings.Split(mark, "."), "", ""); words[0] {
		case "":
		case "fail":
			j.Failure = "it cannot be read"
		default:
			f := finding(words[1], words[0], fmt.Sprintf("spec.field[%d]", i))
			f.Known, f.Severity, f.Text = words[1] != "PG042", "high", "a text"
			if words[2] != "" {
				f.Policies = strings.Split(words[2], "-")
			}
			j.Findings = append(j.Findings, f)
		}
	}
	return j, nil
}

// finding is one about a field, of a code that no policy describes.
func finding(code, effect, field string, policies ...string) Finding {
	return Finding{Detail: admission.Detail{Finding: policy.Finding{Code: code, Effect: policy.Effect(effect), Field: field}, Policies: policies}}
}

// newScanner is one that no goroutine runs: tests make its passes.
func newScanner(t testing.TB, a *apiServer, change ...func(*Options)) (*Scanner, *marker) {
	t.Helper()
	p := &marker{}
	p.activate("sha256:1")
	o := Options{
		Judge: p.Judge, Revision: p.Revision,
		RetryAfter: time.Microsecond, Now: func() time.Time { return clock }, Registerer: prometheus.NewRegistry(),
	}
	if a != nil {
		o.Config = a.config()
	}
	for _, c := range change {
		c(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

// complete makes a pass that must be complete.
func complete(t testing.TB, s *Scanner) {
	t.Helper()
	if ok, err := s.pass(t.Context(), s.options.Revision()); !ok || err != nil {
		t.Fatalf("pass = %v, %v; want a complete one", ok, err)
	}
}

// incomplete makes a pass that must not be complete.
func incomplete(t testing.TB, s *Scanner) {
	t.Helper()
	if ok, err := s.pass(t.Context(), s.options.Revision()); ok || err != nil {
		t.Fatalf("pass = %v, %v; want an incomplete one", ok, err)
	}
}

// answering answers requests whose "GET /path" has a part in it, n times; -1 means always.
func answering(part string, n int, status int32, reason metav1.StatusReason) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if n == 0 || !strings.Contains(r.Method+" "+r.URL.RequestURI(), part) {
			return false
		}
		n--
		writeStatus(w, status, reason, nil)
		return true
	}
}

// metricsOf gathers the metrics of s: name and labels, and the value; of a histogram the number of observations.
func metricsOf(t testing.TB, s *Scanner) map[string]float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	undo, err := s.metrics.register(reg)
	if err != nil {
		t.Fatal(err)
	}
	defer undo()
	return gather(t, reg)
}

func gather(t testing.TB, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			out[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}
