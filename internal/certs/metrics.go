package certs

import (
	"crypto/x509"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics tell how long the certificates are good for.
type Metrics struct {
	expiry    *prometheus.GaugeVec
	rotations *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them with reg, which may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pipeguard_certificate_expiry_timestamp_seconds",
			Help: "When the certificate that this replica serves (serving) and the authority that signed it (authority) expire.",
		}, []string{"certificate"}),
		rotations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pipeguard_certificate_rotations_total",
			Help: "Certificates that this replica replaced as the leader (serving, authority).",
		}, []string{"certificate"}),
	}
	if reg != nil {
		reg.MustRegister(m.expiry, m.rotations)
	}
	return m
}

// expires notes what is served. A Metrics that is nil notes nothing.
func (m *Metrics) expires(what string, c *x509.Certificate) {
	if m != nil {
		m.expiry.WithLabelValues(what).Set(float64(c.NotAfter.Unix()))
	}
}

// leads makes the counters: they exist on the leader alone.
func (m *Metrics) leads() {
	if m != nil {
		m.rotations.WithLabelValues("serving")
		m.rotations.WithLabelValues("authority")
	}
}

func (m *Metrics) rotated(c change) {
	if m != nil && (c.reason == reasonRotated || c.reason == reasonIssued) {
		m.rotations.WithLabelValues(c.what).Inc()
	}
}
