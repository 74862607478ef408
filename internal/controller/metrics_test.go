package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// gathered is what a scrape would show, by name and values of labels.
func gathered(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			out[name] = m.GetGauge().GetValue()
		}
	}
	return out
}

func TestOnlyALeaderHasSeries(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg, time.Now)
	if got := gathered(t, reg); len(got) != 0 {
		t.Errorf("metrics %v", got)
	}
	m.counted(ReplicaCount{Live: 3, Current: 2})
	want := map[string]float64{"pipeguard_replicas live": 3, "pipeguard_replicas current": 2}
	if diff := cmp.Diff(want, gathered(t, reg)); diff != "" {
		t.Error(diff)
	}
	m.subjects.set("p", []v1alpha1.Subject{lasting("l")})
	m.clear()
	if got := gathered(t, reg); len(got) != 0 {
		t.Errorf("metrics after the term: %v", got)
	}
}

func TestSubjectsAreMeasuredWhenTheyAreAskedFor(t *testing.T) {
	reg, now := prometheus.NewRegistry(), noon
	m := NewMetrics(reg, func() time.Time { return now })
	m.subjects.set("p", []v1alpha1.Subject{lasting("l"), ending("a", 8*day), ending("twice", day), ending("twice", 2*day)})
	m.subjects.set("q", nil)
	ends := func(after time.Duration) float64 { return float64(noon.Add(after).Unix()) }
	want := map[string]float64{
		"pipeguard_subjects p open": 4, "pipeguard_subjects p expiring": 2, "pipeguard_subjects p expired": 0,
		"pipeguard_subjects q open": 0, "pipeguard_subjects q expiring": 0, "pipeguard_subjects q expired": 0,
		"pipeguard_subject_expiry_timestamp_seconds p a":     ends(8 * day),
		"pipeguard_subject_expiry_timestamp_seconds p twice": ends(day),
	}
	if diff := cmp.Diff(want, gathered(t, reg)); diff != "" {
		t.Error(diff)
	}
	now = noon.Add(day) // nobody wrote anything
	want["pipeguard_subjects p open"], want["pipeguard_subjects p expired"], want["pipeguard_subjects p expiring"] = 3, 1, 2
	if diff := cmp.Diff(want, gathered(t, reg)); diff != "" {
		t.Error(diff)
	}
	m.subjects.forget("p")
	if got := gathered(t, reg); len(got) != 3 {
		t.Errorf("metrics %v", got)
	}
}
