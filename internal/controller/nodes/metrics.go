package nodes

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// metrics tell how many nodes are in which state. The leader alone has series: two would be counted twice.
type metrics struct{ nodes *prometheus.GaugeVec }

// states are the label's values. A node that is silent is counted as that, whatever it said last.
var states = map[v1alpha1.NodeState]string{
	v1alpha1.NodeGuarding: "guarding", v1alpha1.NodeDenying: "denying", v1alpha1.NodeLocal: "local", v1alpha1.NodeUnreachable: "unreachable",
}

const stateSilent = "silent"

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "pipeguard_guarded_nodes",
		Help: "Nodes by what they say of themselves: guarding, denying, local or unreachable; silent have said nothing for 15 minutes.",
	}, []string{"state"})}
	if r == nil {
		return m, nil
	}
	return m, r.Register(m.nodes)
}

// counted takes note of a snapshot. Each state has a series from the first on, so that an alert sees it rise.
func (m *metrics) counted(c *snapshot) {
	n := map[string]int{stateSilent: 0}
	for _, state := range states {
		n[state] = 0
	}
	for i := range c.nodes {
		state, known := states[c.nodes[i].State]
		switch {
		case c.isSilent(&c.nodes[i]):
			n[stateSilent]++
		case known:
			n[state]++
		default: // of a later release
			n["other"]++
		}
	}
	for state, count := range n {
		m.nodes.WithLabelValues(state).Set(float64(count))
	}
}
