package cri

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are of what was asked and heard since the start.
type counts struct{ good, failed, events, breaks atomic.Int64 }

// Status is what is known and since when.
type Status struct {
	// Listed is when the last good answer was asked for; zero if there was none.
	Listed time.Time
	// Containers are those of pods whose callers are recognised, Faults all others that the runtime listed: sandboxes,
	// containers that have ended, and those whose description does not hold.
	Containers, Faults int
}

// Status tells how much is known.
func (c *Client) Status() Status {
	k := c.known.Load()
	if k == nil {
		return Status{}
	}
	return Status{Listed: k.list.AsOf, Containers: len(k.list.Candidates) - k.faults, Faults: k.faults}
}

// Register shows the client's state in metrics.
func (c *Client) Register(r prometheus.Registerer) error {
	gauge := func(name, help string, value func() float64) error {
		return r.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	counter := func(name, help string, labels prometheus.Labels, n *atomic.Int64) error {
		return r.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels},
			func() float64 { return float64(n.Load()) }))
	}
	const lists, listsHelp = "pipeguard_runtime_lists_total", "Lists asked of the container runtime."
	return errors.Join(
		gauge("pipeguard_runtime_containers", "Containers whose callers are recognised.", func() float64 { return float64(c.Status().Containers) }),
		gauge("pipeguard_runtime_faults", "Containers whose processes are refused: sandboxes, ended ones, and those with an invalid description.",
			func() float64 { return float64(c.Status().Faults) }),
		gauge("pipeguard_runtime_listed_timestamp_seconds", "When the last good list was asked for; 0 if there was none.", func() float64 {
			if s := c.Status(); !s.Listed.IsZero() {
				return float64(s.Listed.UnixMilli()) / 1000
			}
			return 0
		}),
		counter(lists, listsHelp, prometheus.Labels{"result": "good"}, &c.lists.good),
		counter(lists, listsHelp, prometheus.Labels{"result": "failed"}, &c.lists.failed),
		counter("pipeguard_runtime_events_total", "Events received from the container runtime.", nil, &c.lists.events),
		counter("pipeguard_runtime_event_breaks_total", "Ends of the stream of events.", nil, &c.lists.breaks),
	)
}
