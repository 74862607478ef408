package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/controller/nodes"
	"github.com/pipeguard/pipeguard/internal/controller/publish"
)

// countNodes has the statuses of policies say on which nodes they decide. b is nil if no bundles are made here: nodes can
// have them from elsewhere.
func (m *cluster) countNodes(b *bundles, registry prometheus.Registerer, log *zap.Logger) error {
	var published func() []publish.Result
	if b != nil {
		published = b.publisher.Results
	}
	unread, err := nodes.Add(m.manager, m.leads, nodes.Options{Published: published, Label: m.options.Cluster.LabelNodes, Registerer: registry, Log: log})
	if b != nil {
		b.unread = unread
	}
	return err
}
