package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/zapr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/admission/intake"
	"github.com/pipeguard/pipeguard/internal/controller"
	"github.com/pipeguard/pipeguard/internal/controller/leader"
	"github.com/pipeguard/pipeguard/internal/controller/nodes"
	"github.com/pipeguard/pipeguard/internal/controller/scan"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/internal/version"
)

// cluster is a webhook in a cluster.
type cluster struct {
	options options
	config  *rest.Config
	manager manager.Manager
	leads   *leader.Group // what one replica does for all
	verify  func() error  // whether the API server accepts the certificate

	configurationChanges <-chan struct{}
	// beforeInForce does what must be done before the API server is told, at the first installation, to ask about objects. It is
	// called again while it returns an error. Nil does nothing.
	beforeInForce func(context.Context) error
	// inForce is called when it is told so.
	inForce func()
}

func newCluster(o options, s *server) (mode, error) {
	config, err := clusterConfig(o.kubeconfig)
	if err != nil {
		return mode{}, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return mode{}, err
	}
	m := &cluster{options: o, config: config}
	if m.manager, err = manager.New(config, manager.Options{
		Scheme:                 scheme,
		Logger:                 zapr.NewLogger(s.log),
		Metrics:                metricsserver.Options{BindAddress: "0"}, // they are served with the webhook's own
		HealthProbeBindAddress: "0",
		Cache: cache.Options{
			ByObject:         controller.CacheOf(o.podNamespace),
			DefaultTransform: cache.TransformStripManagedFields(),
			NewInformer:      controller.NewInformer,
		},
	}); err != nil {
		return mode{}, fmt.Errorf("connect to the cluster: %w", err)
	}
	if m.leads, err = newLeader(o, config, m.manager, s.log); err != nil {
		return mode{}, err
	}
	if _, err := m.manager.GetCache().GetInformer(context.Background(), namespaceMetadata(), cache.BlockUntilSynced(false)); err != nil {
		return mode{}, fmt.Errorf("watch namespaces: %w", err)
	}
	serving, err := nodes.AddServing(m.manager, s.log)
	if err != nil {
		return mode{}, fmt.Errorf("watch nodes: %w", err)
	}
	var certificates certificates
	certificates, m.verify, m.configurationChanges, err = newChain(o, config, m.manager, m.leads, s)
	return mode{certificates, &clusterNamespaces{m.manager.GetCache()}, serving, m.finish}, err
}

// clusterConfig says how to reach the API server.
func clusterConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	// Without a file this is the pod's own account.
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config.UserAgent = version.String("pipeguard-webhook")
	// The API server has its own fairness; a limit here only makes a leader late.
	config.QPS = -1
	return config, nil
}

// finish adds what follows the cluster: the policies, their status, the scan, and the judgement of policy objects.
func (m *cluster) finish(s *server) error {
	revision := func() string {
		if active, ok := s.engine.Active(); ok {
			return active.Revision()
		}
		return ""
	}
	var parts *controller.Parts
	permissions := permissions{m.manager.GetCache(), s.source}
	scanner, err := scan.New(scan.Options{
		Config:     m.config,
		Judge:      scan.Reviews(s.reviewer, s.engine),
		Revision:   revision,
		NextChange: permissions.nextChange,
		Completed:  func() { parts.Refresh() },
		Interval:   m.options.Cluster.ScanInterval,
		Standard:   m.options.Reports.Standard, StandardRole: m.options.Reports.ClusterRole,
		Registerer: s.registry,
		Log:        s.log,
	})
	if err != nil {
		return err
	}
	floor, err := newFloor(&m.options, m.config, m.manager, s.registry, s)
	if err != nil {
		return err
	}
	bundles, err := newBundles(m.options.Bundles, m.config, s.registry, s.log)
	if err != nil {
		return err
	}
	if parts, err = controller.Add(m.manager, m.leads, controller.Options{
		Engine:   s.engine,
		Base:     s.source.base,
		Assemble: assemble,
		Attempted: func(active policy.Snapshot, err error) {
			s.attempted(active, err)
			scanner.Trigger()
			bundles.attempted(err)
			floor.attempted(err)
		},
		Namespace:  m.options.podNamespace,
		PodName:    m.options.podName,
		Violations: scanner.Violations,
		OtherModes: scanner.OtherModes,
		Bundles:    bundles.report(),
		Floor:      floor.report(),
		Registerer: s.registry,
		Log:        s.log,
	}); err != nil {
		return err
	}
	m.leads.Add(scanner)
	floor.add(m.leads, parts)
	m.beforeInForce, m.inForce = floor.tried, floor.isAsked
	if err := m.keepHooks(s); err != nil {
		return err
	}
	if bundles != nil {
		if err := bundles.add(m.manager, m.leads, s, parts); err != nil {
			return err
		}
	}
	if err := m.countNodes(bundles, s.registry, s.log); err != nil {
		return err
	}
	if err := m.witness(s); err != nil {
		return err
	}
	objects, err := newPolicyObjects(policySources(m.manager.GetClient(), s.source.base), s.log)
	if err != nil {
		return err
	}
	bodies := intake.New(intake.Limits{Places: maxPolicyReviews}) // not those of the reviews of objects: each takes seconds
	s.webhook.Register(policiesPath, bodies.Handler(&webhook.Admission{Handler: objects}))
	s.readiness.also = m.verify
	s.tasks = append(s.tasks,
		m.manager.Start,
		func(ctx context.Context) error {
			return s.source.follow(ctx, func() {
				s.source.warn(s.log)
				parts.Activator.Changed()
			})
		},
	)
	return nil
}

// assemble puts the cluster's objects together with the base policy.
func assemble(base policy.Modules, params admission.Parameters, pipes []v1alpha1.PipePolicy, modules []v1alpha1.PolicyModule) (policy.Modules, error) {
	return policyset.Sources{Base: base, Parameters: params, PipePolicies: pipes, PolicyModules: modules}.Assemble()
}
