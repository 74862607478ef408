package hooks

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pipeguard/pipeguard/internal/entries"
)

// Metrics tell whether the configurations are in force. Only the leader has values.
type Metrics struct {
	inForce  *prometheus.GaugeVec
	changed  *prometheus.GaugeVec
	restored *prometheus.CounterVec
	canary   *prometheus.GaugeVec
}

// NewMetrics makes the metrics and registers them with reg, which may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		inForce: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pipeguard_webhook_in_force", Help: "1 if every entry of a webhook configuration has the rules by which the API server asks.",
		}, []string{"configuration"}),
		changed: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pipeguard_webhook_configuration_changed",
			Help: "1 if a part of a webhook configuration (selectors, service, entries) is not as the chart made it.",
		}, []string{"configuration", "part"}),
		restored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pipeguard_webhook_rules_restored_total", Help: "Times that rules of a webhook configuration were put back which another hand had changed.",
		}, []string{"configuration"}),
		canary: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pipeguard_api_canary",
			Help: "1 for what became of the last canary through the API server: refused as it must be, admitted, unreachable (the API server cannot call the webhook), other (refused by somebody else or without a decision) or none (it could not be sent).",
		}, []string{"answer"}),
	}
	if reg != nil {
		reg.MustRegister(m.inForce, m.changed, m.restored, m.canary)
	}
	return m
}

// ends forgets what another replica knows better from now on.
func (m *Metrics) ends() {
	m.inForce.Reset()
	m.changed.Reset()
	m.canary.Reset()
}

func (m *Metrics) saw(configuration string, complete bool, changed map[string]bool) {
	m.restored.WithLabelValues(configuration) // so that its first step is seen as one
	m.inForce.WithLabelValues(configuration).Set(number(complete))
	for _, part := range entries.Parts() {
		m.changed.WithLabelValues(configuration, part).Set(number(changed[part]))
	}
}

func (m *Metrics) answered(a entries.Answer) {
	for _, other := range []entries.Answer{entries.Refused, entries.Admitted, entries.Unreachable, entries.Other, entries.None} {
		m.canary.WithLabelValues(string(other)).Set(number(other == a))
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
