package controller

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// Metrics tell about replicas and the subjects of PipePolicies. The leader alone has series: two would be counted twice.
type Metrics struct {
	replicas *prometheus.GaugeVec
	subjects *subjectMetrics
}

// NewMetrics makes the metrics and registers them with reg, which may be nil.
func NewMetrics(reg prometheus.Registerer, now func() time.Time) *Metrics {
	m := &Metrics{
		replicas: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pipeguard_replicas",
			Help: "Replicas of the webhook by state: live have reported within 90 s, current are live and decide by what the leader decides by.",
		}, []string{"state"}),
		subjects: newSubjectMetrics(now),
	}
	if reg != nil {
		reg.MustRegister(m.replicas, m.subjects)
	}
	return m
}

func (m *Metrics) counted(c ReplicaCount) {
	m.replicas.WithLabelValues("live").Set(float64(c.Live))
	m.replicas.WithLabelValues("current").Set(float64(c.Current))
}

// clear ends the series with the term.
func (m *Metrics) clear() {
	m.replicas.Reset()
	m.subjects.clear()
}

// subjectMetrics are made when they are asked for: a permission ends without a write, and the series of
// what was deleted must vanish.
type subjectMetrics struct {
	counts, ends *prometheus.Desc
	now          func() time.Time

	mu       sync.Mutex // guards policies
	policies map[string][]v1alpha1.Subject
}

func newSubjectMetrics(now func() time.Time) *subjectMetrics {
	return &subjectMetrics{
		counts: prometheus.NewDesc("pipeguard_subjects",
			"Subjects of a PipePolicy by state: open have their permission, expiring are those of them that lose it within 7 days, expired had it.",
			[]string{"policy", "state"}, nil),
		ends: prometheus.NewDesc("pipeguard_subject_expiry_timestamp_seconds",
			"When the permission of a subject of a PipePolicy ends or ended; only for subjects with an end.",
			[]string{"policy", "subject"}, nil),
		now:      now,
		policies: map[string][]v1alpha1.Subject{},
	}
}

func (m *subjectMetrics) set(policy string, subjects []v1alpha1.Subject) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.policies[policy] = subjects
}

func (m *subjectMetrics) forget(policy string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.policies, policy)
}

func (m *subjectMetrics) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.policies)
}

// Describe implements prometheus.Collector.
func (m *subjectMetrics) Describe(c chan<- *prometheus.Desc) {
	c <- m.counts
	c <- m.ends
}

// Collect implements prometheus.Collector.
func (m *subjectMetrics) Collect(c chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for name, subjects := range m.policies {
		n := countSubjects(subjects, now)
		for state, v := range map[string]int32{"open": n.Open, "expiring": n.ExpiringSoon, "expired": n.Expired} {
			c <- prometheus.MustNewConstMetric(m.counts, prometheus.GaugeValue, float64(v), name, state)
		}
		seen := map[string]bool{}
		for _, s := range subjects {
			if s.ExpiresAt == nil || seen[s.Name] { // a second series of one name would spoil the whole scrape
				continue
			}
			seen[s.Name] = true
			c <- prometheus.MustNewConstMetric(m.ends, prometheus.GaugeValue, float64(s.ExpiresAt.Unix()), name, s.Name)
		}
	}
}
