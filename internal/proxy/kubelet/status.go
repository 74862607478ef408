package kubelet

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Listed is when the last good list was asked for; zero if there was none. The kubelet is asked only about pods that are
// not known yet, so that an old list is no fault.
func (c *Client) Listed() time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.listed
}

// Register shows the client's state in metrics.
func (c *Client) Register(r prometheus.Registerer) error {
	counter := func(result string, n *atomic.Int64) error {
		return r.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "pipeguard_kubelet_lists_total", Help: "Lists of pods asked of the kubelet.",
			ConstLabels: prometheus.Labels{"result": result},
		}, func() float64 { return float64(n.Load()) }))
	}
	return errors.Join(counter("good", &c.good), counter("failed", &c.failed))
}
