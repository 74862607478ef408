package keepfloor

import "github.com/prometheus/client_golang/prometheus"

// Metrics tell of the floor. The leader alone has the gauge.
type Metrics struct {
	inForce *prometheus.GaugeVec
	errors  prometheus.Counter
	repairs *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		inForce: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pipeguard_floor_in_force", Help: "1 if the leader found the floor as the policies say at its last look, 0 if not. There is none where no floor is kept.",
		}, nil),
		errors: prometheus.NewCounter(prometheus.CounterOpts{Name: "pipeguard_floor_errors_total", Help: "Looks at the floor that ended in an error."}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pipeguard_floor_repairs_total", Help: "Objects of the floor that somebody else had changed or removed, and that were put back.",
		}, []string{"found"}),
	}
	for _, what := range []change{removed, altered} {
		m.repairs.WithLabelValues(string(what))
	}
	reg.MustRegister(m.inForce, m.errors, m.repairs)
	return m
}

// seen is what came of a look.
func (m *Metrics) seen(mode Mode, err error) {
	value := 1.0
	if err != nil {
		m.errors.Inc()
		value = 0
	}
	if mode.IsKept() {
		m.inForce.WithLabelValues().Set(value)
	}
}

func (m *Metrics) repaired(what change) { m.repairs.WithLabelValues(string(what)).Inc() }

// clear ends the gauge with the leader's term: another replica has it now.
func (m *Metrics) clear() { m.inForce.Reset() }
