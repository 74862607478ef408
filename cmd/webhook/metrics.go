package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// policyMetrics tells which policies decide, and how attempts to replace them ended.
type policyMetrics struct {
	info      *prometheus.GaugeVec
	activated prometheus.Gauge
	tests     prometheus.Gauge
	attempts  *prometheus.CounterVec
}

func newPolicyMetrics(reg prometheus.Registerer) *policyMetrics {
	m := &policyMetrics{
		info: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pipeguard_policy_info", Help: "1 for the revision of the policies that decide.",
		}, []string{"revision"}),
		activated: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pipeguard_policy_activated_timestamp_seconds", Help: "When the policies that decide were activated.",
		}),
		tests: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pipeguard_policy_tests", Help: "Tests that ran here before the policies that decide were activated. Those of the built-in policies ran when the program was made.",
		}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pipeguard_policy_activations_total", Help: "Attempts to activate policies by result (activated, refused).",
		}, []string{"result"}),
	}
	m.attempts.WithLabelValues("activated")
	m.attempts.WithLabelValues("refused")
	reg.MustRegister(m.info, m.activated, m.tests, m.attempts)
	return m
}

func (m *policyMetrics) attempted(s policy.Snapshot, err error) {
	if err != nil {
		m.attempts.WithLabelValues("refused").Inc()
		return
	}
	m.attempts.WithLabelValues("activated").Inc()
	m.info.Reset() // there is one revision at a time
	m.info.WithLabelValues(s.Revision()).Set(1)
	m.activated.Set(float64(s.Activated().Unix()))
	m.tests.Set(float64(s.Tests()))
}

// canaryMetrics tells whether the process enforces.
type canaryMetrics struct {
	ready    prometheus.Gauge
	denied   prometheus.Gauge
	failures prometheus.Counter
}

func newCanaryMetrics(reg prometheus.Registerer) *canaryMetrics {
	m := &canaryMetrics{
		ready: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pipeguard_canary_denied", Help: "1 if the canaries that were sent last were refused as they must be.",
		}),
		denied: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pipeguard_canary_last_denied_timestamp_seconds", Help: "When the canaries were last refused as they must be.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pipeguard_canary_failures_total", Help: "Canaries that were not refused by a rule.",
		}),
	}
	reg.MustRegister(m.ready, m.denied, m.failures)
	return m
}

func (m *canaryMetrics) sent(err error) {
	if err != nil {
		m.ready.Set(0)
		m.failures.Inc()
		return
	}
	m.ready.Set(1)
	m.denied.Set(float64(time.Now().Unix()))
}
