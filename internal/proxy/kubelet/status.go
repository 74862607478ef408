package kubelet

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

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
