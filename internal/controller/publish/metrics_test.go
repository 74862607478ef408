package publish

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestMetricsTellOfTheBundleThatNodesHave(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg)
	written := Result{Pool: "windows", Revision: 7, ExpiresAt: time.Unix(100, 0), Written: true, Unread: []string{"a", "b"}}
	m.Attempted([]Result{written, {Pool: "gpu", Err: errors.New("no")}})
	written.Written = false
	m.Attempted([]Result{written})
	m.Attempted([]Result{{Pool: "windows", Err: errors.New("no")}, {Pool: "lost"}})
	m.Attempted([]Result{{Pool: "lost", Unknown: errors.New("no")}})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			name := f.GetName()
			for _, l := range x.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = x.GetGauge().GetValue() + x.GetCounter().GetValue()
		}
	}
	want := map[string]float64{
		"pipeguard_bundle_published_revision windows":                 7,
		"pipeguard_bundle_published_expiry_timestamp_seconds windows": 100,
		"pipeguard_bundle_unreadable_nodes windows":                   2,
		"pipeguard_bundle_published_revision lost":                    0,
		"pipeguard_bundle_published_expiry_timestamp_seconds lost":    float64(time.Time{}.Unix()),
		"pipeguard_bundle_publications_total lost written":            0,
		"pipeguard_bundle_publications_total lost failed":             0,
		"pipeguard_bundle_publications_total windows written":         1,
		"pipeguard_bundle_publications_total windows failed":          1,
		"pipeguard_bundle_publications_total gpu written":             0,
		"pipeguard_bundle_publications_total gpu failed":              1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
