package copies

import "github.com/prometheus/client_golang/prometheus"

// counts are the metrics of a destination, each with the count that it shows.
var counts = []struct {
	*prometheus.Desc
	kind prometheus.ValueType
	of   func(Stats) uint64
}{
	{desc("pipeguard_audit_copies_sent_total", "Audit records that a destination beside the log has taken."), prometheus.CounterValue, func(s Stats) uint64 { return s.Sent }},
	{desc("pipeguard_audit_copies_dropped_total", "Audit records that were not copied since the queue of the destination was full."), prometheus.CounterValue, func(s Stats) uint64 { return s.Dropped }},
	{desc("pipeguard_audit_copies_failed_total", "Audit records that a destination did not take."), prometheus.CounterValue, func(s Stats) uint64 { return s.Failed }},
	{desc("pipeguard_audit_copies_queued", "Audit records that wait for a destination to take them."), prometheus.GaugeValue, func(s Stats) uint64 { return s.Queued }},
}

func desc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"place"}, nil)
}

// Collector returns the counts of c for Prometheus.
func Collector(c *Copies) prometheus.Collector { return collector{c} }

type collector struct{ copies *Copies }

// Describe implements prometheus.Collector.
func (collector) Describe(out chan<- *prometheus.Desc) {
	for _, n := range counts {
		out <- n.Desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	for _, s := range c.copies.Stats() {
		for _, n := range counts {
			out <- prometheus.MustNewConstMetric(n.Desc, n.kind, float64(n.of(s)), s.Name)
		}
	}
}
