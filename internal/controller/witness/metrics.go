package witness

import "github.com/prometheus/client_golang/prometheus"

// metrics tell of the witness. Each replica counts what it has answered.
type metrics struct {
	cosigned, refused *prometheus.CounterVec
	repeated          prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		cosigned: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pipeguard_witness_cosigned_total",
			Help: "Checkpoints of audit logs that were cosigned, by what was remembered of the log: known, or new if it was nothing.",
		}, []string{"log"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pipeguard_witness_refused_total",
			Help: "Checkpoints of audit logs that were not cosigned by reason. After rollback, fork, proof and pin a log or its key was changed; after time a clock is wrong, or an old one was sent again.",
		}, []string{"reason"}),
		repeated: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pipeguard_witness_repeated_total",
			Help: "Checkpoints of audit logs that were cosigned before and came again. The answer was the same, and shows of no log that it lives.",
		}),
	}
	for _, r := range allReasons() {
		m.refused.WithLabelValues(string(r))
	}
	for _, log := range []string{"known", "new"} {
		m.cosigned.WithLabelValues(log)
	}
	reg.MustRegister(m.cosigned, m.refused, m.repeated)
	return m
}
