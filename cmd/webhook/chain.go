package main

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pipeguard/pipeguard/internal/certs"
	"github.com/pipeguard/pipeguard/internal/controller/keepfloor"
	"github.com/pipeguard/pipeguard/internal/controller/leader"
)

// newChain supplies the certificate in a cluster, and says whether the API server accepts it. The certificate is kept in a Secret and replaced in time,
// unless the options name files: then their writer does so, cert-manager for instance, and also sets the caBundle of the configurations.
// The channel has a value after any change of a configuration.
func newChain(o options, config *rest.Config, mgr manager.Manager, leads *leader.Group, s *server) (certificates, func() error, <-chan struct{}, error) {
	names := certs.Names{
		Namespace:      o.podNamespace,
		Service:        o.Cluster.ServiceName,
		Configurations: []string{o.Cluster.WebhookConfig, o.Cluster.PolicyWebhookConfig},
	}
	if o.Floor.Mode == keepfloor.Only { // no object is sent to the webhook
		names.Configurations = []string{o.Cluster.PolicyWebhookConfig}
	}
	if o.Certificate.isMade() {
		names.Secret = o.Certificate.Secret
		names.Extra = o.Certificate.Hosts
	}
	live, err := certs.NewCluster(config, names)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := mgr.Add(live); err != nil {
		return nil, nil, nil, err
	}
	metrics := certs.NewMetrics(s.registry)
	supply, err := newSupply(o, names, live, metrics, mgr, leads, s)
	if err != nil {
		return nil, nil, nil, err
	}
	check, err := certs.NewChain(certs.ChainOptions{Names: names, Copy: live, GetCertificate: supply.GetCertificate, Metrics: metrics})
	if err != nil {
		return nil, nil, nil, err
	}
	return supply, func() error { return check.Check(nil) }, live.ConfigurationChanges(), nil
}

// newSupply reads the files that the options name, or follows the Secret and, as the leader, keeps it fresh.
func newSupply(o options, names certs.Names, live *certs.Cluster, metrics *certs.Metrics, mgr manager.Manager, leads *leader.Group, s *server) (certificates, error) {
	if !o.Certificate.isMade() {
		return newCertificates(o, s.log)
	}
	rotator, err := certs.NewRotator(certs.Options{Names: names, Store: live, Log: s.log, Metrics: metrics, Events: mgr.GetEventRecorder("pipeguard")})
	if err != nil {
		return nil, err
	}
	leads.Add(rotator)
	return certs.NewFollower(certs.FollowerOptions{Names: names, Copy: live, Log: s.log, Metrics: metrics})
}
