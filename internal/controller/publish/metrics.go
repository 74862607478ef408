package publish

import "github.com/prometheus/client_golang/prometheus"

// Metrics tell of the bundles. The leader alone has series: two would be counted twice.
type Metrics struct {
	revision, expiry, unread *prometheus.GaugeVec
	publications             *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	pool := []string{"pool"}
	m := &Metrics{
		revision: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pipeguard_bundle_published_revision", Help: "Revision of the bundle that is published for a pool of nodes.",
		}, pool),
		expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pipeguard_bundle_published_expiry_timestamp_seconds",
			Help: "When the bundle that is published for a pool of nodes ends; a node that has no newer one permits nothing from then on.",
		}, pool),
		unread: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pipeguard_bundle_unreadable_nodes",
			Help: "Nodes of a pool that report and cannot read the bundle that is published for it; none if that is unknown.",
		}, pool),
		publications: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pipeguard_bundle_publications_total",
			Help: "Bundles for a pool of nodes by result: written, or failed. What is published already is not written again.",
		}, []string{"pool", "result"}),
	}
	reg.MustRegister(m.revision, m.expiry, m.unread, m.publications)
	return m
}

// Clear ends the gauges with the leader's term: another replica has them now.
func (m *Metrics) Clear() {
	m.revision.Reset()
	m.expiry.Reset()
	m.unread.Reset()
}

// Attempted takes note of an attempt. After one that failed, nodes go on with the bundle before, and so do its series.
func (m *Metrics) Attempted(results []Result) {
	for _, r := range results {
		written, failed := m.publications.WithLabelValues(r.Pool, "written"), m.publications.WithLabelValues(r.Pool, "failed")
		if r.Err != nil {
			failed.Inc()
			continue
		}
		m.revision.WithLabelValues(r.Pool).Set(float64(r.Revision))
		m.expiry.WithLabelValues(r.Pool).Set(float64(r.ExpiresAt.Unix()))
		if m.unread.DeleteLabelValues(r.Pool); r.Unknown == nil {
			m.unread.WithLabelValues(r.Pool).Set(float64(len(r.Unread)))
		}
		if r.Written {
			written.Inc()
		}
	}
}
