package proxy

import "testing"

// reconciled fails if the server's own comparison of arrivals and records does not come out even, or something is left open.
func (f *fixture) reconciled(t testing.TB) {
	t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, family := range families {
		name := family.GetName()
		if name != "pipeguard_audit_unreconciled" && name != "pipeguard_audit_open" {
			continue
		}
		for _, m := range family.GetMetric() {
			seen++
			if v := m.GetGauge().GetValue(); v != 0 {
				t.Errorf("%s %v is %v", name, m.GetLabel(), v)
			}
		}
	}
	if seen < 4 {
		t.Errorf("%d series say whether anything is missing", seen)
	}
}

// reconciledAtRest is reconciled while so many connections are open and nothing happens on them.
func (m *matrix) reconciledAtRest(connections int) {
	m.t.Helper()
	if n := m.metric(m.t, "pipeguard_audit_unreconciled"); n != 0 {
		m.t.Errorf("%v unreconciled", n)
	}
	if n := m.metric(m.t, "pipeguard_audit_open"); n != float64(connections) {
		m.t.Errorf("%v open, want %d connections", n, connections)
	}
}
