package scan

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics tell what the last complete pass found. No label has a value that an object chooses.
type metrics struct {
	findings  *prometheus.GaugeVec
	objects   *prometheus.GaugeVec
	duration  prometheus.Histogram
	last      prometheus.Gauge
	errors    prometheus.Counter
	published map[[2]string]bool // labels that findings has

	hasStandard    bool // whether the following are registered
	standard       *prometheus.GaugeVec
	standardErrors prometheus.Counter
}

// newMetrics returns the metrics; with those of standard reports if there are any.
func newMetrics(hasStandard bool) *metrics {
	return &metrics{
		findings: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pipeguard_scan_findings",
			Help: "Findings of the last complete scan by effect (deny, error, warn, audit) and code.",
		}, []string{"effect", "code"}),
		objects: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pipeguard_scan_objects", Help: "Objects that the last complete scan judged, by kind.",
		}, []string{"kind"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pipeguard_scan_duration_seconds", Help: "Time that a scan took.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pipeguard_scan_last_completed_timestamp_seconds",
			Help: "When a scan last judged everything and wrote every report; 0 before the first.",
		}),
		errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pipeguard_scan_errors_total", Help: "Lists that could not be read and reports that could not be written, each attempt.",
		}),
		published:   map[[2]string]bool{},
		hasStandard: hasStandard,
		standard: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pipeguard_standard_reports",
			Help: "1 for what became of the standard reports in the last scan: written, absent (the cluster does not have their kinds) or failing.",
		}, []string{"state"}),
		standardErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pipeguard_standard_report_errors_total", Help: "Standard reports that could not be read or written, each attempt.",
		}),
	}
}

// standardReports publishes what became of the standard reports.
func (m *metrics) standardReports(state standardState) {
	for _, s := range standardStates() {
		value := 0.0
		if s == state {
			value = 1
		}
		m.standard.WithLabelValues(string(s)).Set(value)
	}
}

func (m *metrics) collectors() []prometheus.Collector {
	all := []prometheus.Collector{m.findings, m.objects, m.duration, m.last, m.errors}
	if m.hasStandard {
		all = append(all, m.standard, m.standardErrors)
	}
	return all
}

// register returns the function that undoes it.
func (m *metrics) register(reg prometheus.Registerer) (undo func(), err error) {
	var done []prometheus.Collector
	undo = func() {
		for _, c := range done {
			reg.Unregister(c)
		}
	}
	for _, c := range m.collectors() {
		if err := reg.Register(c); err != nil {
			undo()
			return nil, fmt.Errorf("register metrics of the scan: %w", err)
		}
		done = append(done, c)
	}
	return undo, nil
}

// completed publishes what a pass found. Labels that it has no value for go; the others change in place, so that no
// reading falls into a gap.
func (m *metrics) completed(s *totals, at time.Time) {
	values := map[[2]string]int32{}
	for key, n := range s.counts {
		values[[2]string{key.effect, key.code}] = n
	}
	for labels := range m.published {
		if _, ok := values[labels]; !ok {
			m.findings.DeleteLabelValues(labels[:]...)
			delete(m.published, labels)
		}
	}
	for labels, n := range values {
		m.findings.WithLabelValues(labels[:]...).Set(float64(n))
		m.published[labels] = true
	}
	for kind, n := range s.kinds {
		m.objects.WithLabelValues(kind).Set(float64(n))
	}
	m.last.Set(float64(at.Unix()))
}
