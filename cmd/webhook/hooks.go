package main

import (
	"github.com/pipeguard/pipeguard/internal/controller/keepfloor"
	"github.com/pipeguard/pipeguard/internal/entries"
	"github.com/pipeguard/pipeguard/internal/hooks"
)

// noCanary, in place of a namespace, sends none.
const noCanary = "-"

// keepHooks has the leader bring the webhook configurations into force once it serves, and keep them so.
func (m *cluster) keepHooks(s *server) error {
	canary := m.options.Cluster.CanaryNamespace
	if canary == noCanary {
		canary = ""
	}
	objects := m.options.Cluster.WebhookConfig
	if m.options.Floor.Mode == keepfloor.Only {
		objects = ""
	}
	keeper, err := hooks.NewKeeper(hooks.Options{
		Cluster:         hooks.NewCluster(m.manager.GetAPIReader(), m.manager.GetClient()),
		Objects:         objects,
		Policies:        m.options.Cluster.PolicyWebhookConfig,
		Service:         entries.Service{Namespace: m.options.podNamespace, Name: m.options.Cluster.ServiceName},
		CanaryNamespace: canary,
		Serves:          s.readiness.enforces,
		Before:          m.beforeInForce,
		InForce:         m.inForce,
		Changes:         m.configurationChanges,
		Log:             s.log,
		Metrics:         hooks.NewMetrics(s.registry),
		Events:          m.manager.GetEventRecorder("pipeguard"),
	})
	if err != nil {
		return err
	}
	m.leads.Add(keeper)
	return nil
}
