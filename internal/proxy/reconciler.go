package proxy

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Kinds of events that must leave a record.
const (
	kindConnection = "connection"
	kindRequest    = "request"
)

// reconciler holds what has arrived against what is in the log. Arrivals are counted where they are accepted or announced, ends where the
// socket is closed or gRPC is done with the request, and records where the log has taken them: none of the three is derived from another.
type reconciler struct {
	mu       sync.Mutex // guards accounts
	accounts map[account]*balance
}

type account struct{ pipe, kind string }

// balance is of one pipe and one kind. All of it only grows but open and waiting, and arrived where connections are recorded together.
type balance struct {
	arrived  int
	open     int // not over yet
	waiting  int // records that wait for a log that has failed
	recorded int
}

// unreconciled is how many have ended without a record that is in the log or on its way there. Below 0, there are records of what is not
// over: an answer is still being sent, or something has two records.
func (b balance) unreconciled() int { return b.arrived - b.open - b.waiting - b.recorded }

func (t *reconciler) change(pipe, kind string, by func(*balance)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := account{pipe, kind}
	b := t.accounts[at]
	if b == nil {
		b = &balance{}
		t.accounts[at] = b
	}
	by(b)
}

// kindOf says which arrival a record ends.
func kindOf(e *audit.Event) string {
	if e.Type == audit.TypeConnection {
		return kindConnection
	}
	return kindRequest
}

var (
	unreconciledDesc = prometheus.NewDesc("pipeguard_audit_unreconciled",
		"Connections and requests that are over and have no record in the log, nor one that waits for it. More than 0 means that records are missing. "+
			"Less than 0 is the number of answers on their way; if it never comes back to 0, something was recorded twice.", []string{"pipe", "kind"}, nil)
	openDesc = prometheus.NewDesc("pipeguard_audit_open",
		"Connections and requests that are not over, each of which will leave a record.", []string{"pipe", "kind"}, nil)
)

// Describe implements prometheus.Collector.
func (t *reconciler) Describe(out chan<- *prometheus.Desc) { out <- unreconciledDesc; out <- openDesc }

// Collect implements prometheus.Collector.
func (t *reconciler) Collect(out chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at, b := range t.accounts {
		out <- prometheus.MustNewConstMetric(unreconciledDesc, prometheus.GaugeValue, float64(b.unreconciled()), at.pipe, at.kind)
		out <- prometheus.MustNewConstMetric(openDesc, prometheus.GaugeValue, float64(b.open), at.pipe, at.kind)
	}
}
