package admission

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts reviews. No label has a value that an object chooses.
type Metrics struct {
	decisions     *prometheus.CounterVec
	reviews       *prometheus.HistogramVec
	evaluations   prometheus.Histogram
	responses     *prometheus.CounterVec
	auditFailures prometheus.Counter

	// allow and deny are the two values of reviews, looked up once.
	allow, deny prometheus.Observer
	// nothing is the counter of objects that hold nothing to decide, and ok that of answered reviews: the two that
	// almost every request needs.
	nothing, ok prometheus.Counter
}

// NewMetrics makes the metrics and registers them with reg, which may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pipeguard_admission_decisions_total",
			Help: "Judged objects by effect (allow, audit, warn, deny) and by the code that decided; none without a finding. Effect none counts objects that hold nothing to decide.",
		}, []string{"effect", "code"}),
		reviews: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pipeguard_admission_review_duration_seconds",
			Help:    "Time from the arrival of a review's headers to its answer.",
			Buckets: []float64{.00001, .000025, .00005, .0001, .00015, .00025, .0005, .001, .0025, .01, .05, .25, 1, 5},
		}, []string{"allowed"}),
		evaluations: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "pipeguard_policy_evaluation_duration_seconds",
			Help:    "Time of one decision of the policies, with the wait for a slot. Decisions that are remembered count as well.",
			Buckets: []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .01, .05},
		}),
		responses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pipeguard_admission_http_responses_total",
			Help: "HTTP answers of the admission endpoint by status code.",
		}, []string{"code"}),
		auditFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pipeguard_audit_write_failures_total",
			Help: "Audit records that could not be written.",
		}),
	}
	m.allow, m.deny = m.reviews.WithLabelValues("true"), m.reviews.WithLabelValues("false")
	m.nothing, m.ok = m.decisions.WithLabelValues("none", "none"), m.responses.WithLabelValues("200")
	if reg != nil {
		reg.MustRegister(m.decisions, m.reviews, m.evaluations, m.responses, m.auditFailures)
	}
	return m
}

// decided counts a result. known reports whether the active policies describe its code: a code that a policy computed
// is counted as other, so that there are no more series than rules.
func (m *Metrics) decided(res *Result, known bool) {
	code := res.Code
	switch {
	case res.DecisionID == "":
		m.nothing.Inc()
		return
	case code == "":
		code = "none"
	case code != CodeFailure && !known:
		code = "other"
	}
	m.decisions.WithLabelValues(string(res.Effect), code).Inc()
}

func (m *Metrics) evaluated(d time.Duration) { m.evaluations.Observe(d.Seconds()) }

func (m *Metrics) reviewed(allowed bool, d time.Duration) {
	if allowed {
		m.allow.Observe(d.Seconds())
	} else {
		m.deny.Observe(d.Seconds())
	}
}

func (m *Metrics) responded(status int) {
	if status == 200 {
		m.ok.Inc()
		return
	}
	m.responses.WithLabelValues(strconv.Itoa(status)).Inc()
}

// AuditFailed counts an audit record that could not be written, for writers that find out later than Append returns.
func (m *Metrics) AuditFailed() { m.auditFailures.Inc() }
