package copies

import "github.com/prometheus/client_golang/prometheus"

// Collector returns the counts of c for Prometheus.
func Collector(c *Copies) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"place"}, nil)
	}
	return &collector{
		copies:  c,
		sent:    desc("pipeguard_audit_copies_sent_total", "Audit records that a destination beside the log has taken."),
		dropped: desc("pipeguard_audit_copies_dropped_total", "Audit records that were not copied since the queue of the destination was full."),
		failed:  desc("pipeguard_audit_copies_failed_total", "Audit records that a destination did not take."),
		queued:  desc("pipeguard_audit_copies_queued", "Audit records that wait for a destination to take them."),
	}
}

type collector struct {
	copies                        *Copies
	sent, dropped, failed, queued *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.sent, c.dropped, c.failed, c.queued} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	for _, s := range c.copies.Stats() {
		out <- prometheus.MustNewConstMetric(c.sent, prometheus.CounterValue, float64(s.Sent), s.Name)
		out <- prometheus.MustNewConstMetric(c.dropped, prometheus.CounterValue, float64(s.Dropped), s.Name)
		out <- prometheus.MustNewConstMetric(c.failed, prometheus.CounterValue, float64(s.Failed), s.Name)
		out <- prometheus.MustNewConstMetric(c.queued, prometheus.GaugeValue, float64(s.Queued), s.Name)
	}
}
