package main

import (
	"context"
	"errors"
	"io"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// validatePath is where reviews are answered.
const validatePath = "/validate"

// server is the process: its parts, and what they share.
type server struct {
	log       *zap.Logger
	registry  *prometheus.Registry
	engine    *policy.Engine
	source    *source
	reviewer  *admission.Reviewer
	records   *records
	metrics   *policyMetrics
	certs     certificates
	webhook   *webServer
	readiness *readiness
	endpoints []*endpoint
	policies  *policies // without a cluster
	leave     leave
	tasks     []func(context.Context) error
}

// rememberedDecisions are enough for the objects that workloads and controllers ask about again and again. They take 0.5 MB as a rule.
const rememberedDecisions = 1024

// newServer makes the parts. It binds the addresses of health and metrics, and reads every file once.
func newServer(ctx context.Context, o options, stdout io.Writer, log *zap.Logger) (s *server, err error) {
	s = &server{log: log, registry: prometheus.NewRegistry()}
	s.metrics = newPolicyMetrics(s.registry)
	if s.source, err = newSource(o); err != nil {
		return nil, err
	}
	s.source.warn(log)
	// The built-in policies passed their tests when this program was made.
	if s.engine, err = policy.New(policy.Options{BaseTested: o.PolicyDir == "", Remember: rememberedDecisions, Log: log}); err != nil {
		return nil, err
	}
	mode := newStandalone
	if !o.standalone {
		mode = newCluster
	}
	m, err := mode(o, s)
	if err != nil {
		return nil, err
	}
	metrics := admission.NewMetrics(s.registry)
	requests := fewLines(log)
	if s.records, err = openRecords(ctx, o, stdout, log, func(err error) {
		metrics.AuditFailed()
		log.Error("audit record not written", zap.Error(err))
	}); err != nil {
		return nil, err
	}
	defer func(r *records) {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}(s.records)
	if s.reviewer, err = admission.NewReviewer(admission.ReviewerOptions{
		Engine:        s.engine,
		Namespaces:    m.namespaces,
		Pipes:         m.pipes,
		Audit:         s.records,
		AuditRequired: o.Audit.Required,
		Log:           requests,
		Metrics:       metrics,
	}); err != nil {
		return nil, err
	}
	s.certs = m.certificates
	if s.webhook, err = newWebhook(o, s.certs, s.registry, requests); err != nil {
		return nil, err
	}
	s.webhook.Register(validatePath, s.leave.whileLeaving(s.reviewer))
	s.readiness = newReadiness(s.reviewer, s.webhook.answers, newCanaryMetrics(s.registry), log)
	if err := m.finish(s); err != nil {
		return nil, err
	}
	s.endpoints, err = newEndpoints(o, s.registry, s.readiness, requests)
	return s, err
}

// mode is what differs between a webhook in a cluster and one without.
type mode struct {
	certificates certificates
	namespaces   admission.NamespaceLabels
	pipes        admission.ServedPipes // nil if it is not known which nodes serve them
	finish       func(s *server) error // adds the mode's own tasks to a server whose other parts are there
}

// attempted takes note of an attempt to activate policies.
func (s *server) attempted(active policy.Snapshot, err error) {
	defer giveBack()
	if err != nil {
		s.log.Error("policies not activated", zap.Error(err))
	}
	s.metrics.attempted(active, err)
	if err != nil {
		return
	}
	s.readiness.recheck()
}

// run serves until ctx is done or a part fails, and waits until every part has stopped.
func (s *server) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	serve := func(ctx context.Context) error { return s.webhook.Start(s.leave.after(ctx, s.webhook.listener.Open)) }
	for _, task := range append(s.tasks, s.certs.Start, serve, s.readiness.run, afterwards) {
		group.Go(func() error { return task(ctx) })
	}
	for _, e := range s.endpoints {
		group.Go(func() error { return e.run(ctx) })
		s.log.Info("serving", zap.String(logkeys.Name, e.name), zap.String(logkeys.Address, e.address()))
	}
	s.log.Info("serving", zap.String(logkeys.Name, "reviews"), zap.String(logkeys.Address, s.webhook.address()), zap.String(logkeys.Path, validatePath))
	err := group.Wait()
	s.log.Info("stopped")
	return errors.Join(err, s.records.Close())
}
