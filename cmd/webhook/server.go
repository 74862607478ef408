package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// validatePath is where reviews are answered.
const validatePath = "/validate"

// server is the process: its parts, and what they share.
type server struct {
	log       *zap.Logger
	address   string // of the webhook, with the port that was chosen
	webhook   webhook.Server
	certs     certificates
	policies  *policies
	readiness *readiness
	endpoints []*endpoint
	records   *records
}

// newServer makes the parts. It binds the addresses of health and metrics, and reads every file once.
func newServer(o options, stdout io.Writer, log *zap.Logger) (*server, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	source, err := loadSource(o)
	if err != nil {
		return nil, err
	}
	labels, err := loadNamespaces(o.namespaces)
	if err != nil {
		return nil, err
	}
	engine, err := policy.New(policy.Options{Checks: admission.Checks(source.guard), Log: log})
	if err != nil {
		return nil, err
	}
	metrics := admission.NewMetrics(registry)
	records, err := openRecords(o, stdout, func(err error) {
		metrics.AuditFailed()
		log.Error("audit record not written", zap.Error(err))
	})
	if err != nil {
		return nil, err
	}
	reviewer, err := admission.NewReviewer(admission.ReviewerOptions{
		Engine:        engine,
		Guard:         source.guard,
		Namespaces:    labels,
		Audit:         records,
		AuditRequired: o.auditRequired,
		Log:           log,
		Metrics:       metrics,
	})
	if err != nil {
		return nil, err
	}
	certs, err := newCertificates(o, log)
	if err != nil {
		return nil, err
	}
	s := &server{log: log, certs: certs, records: records}
	if s.webhook, s.address, err = newWebhook(o, certs); err != nil {
		return nil, err
	}
	s.webhook.Register(validatePath, reviewer)
	s.readiness = newReadiness(reviewer, s.webhook.StartedChecker(), newCanaryMetrics(registry), log)
	s.policies = &policies{
		source: source, engine: engine, reviewer: reviewer, log: log,
		metrics: newPolicyMetrics(registry), activated: s.readiness.recheck, poll: pollParameters,
	}
	if s.endpoints, err = newEndpoints(o, registry, s.readiness); err != nil {
		return nil, err
	}
	return s, nil
}

// newWebhook makes controller-runtime's server.
func newWebhook(o options, certs certificates) (webhook.Server, string, error) {
	host, port, err := freePort(o.listenAddress)
	if err != nil {
		return nil, "", err
	}
	var clients *x509.CertPool
	if o.clientCAFile != "" {
		text, err := os.ReadFile(o.clientCAFile) // #nosec G304 -- the operator names the file
		if err != nil {
			return nil, "", fmt.Errorf("read client authorities: %w", err)
		}
		if clients = x509.NewCertPool(); !clients.AppendCertsFromPEM(text) {
			return nil, "", fmt.Errorf("read client authorities %s: no certificate in it", o.clientCAFile)
		}
	}
	configure := func(c *tls.Config) {
		c.MinVersion = tls.VersionTLS12
		c.GetCertificate = certs.GetCertificate
		c.NextProtos = []string{"http/1.1"}
		if o.http2 {
			c.NextProtos = []string{"h2", "http/1.1"}
		}
		if clients != nil {
			c.ClientCAs, c.ClientAuth = clients, tls.RequireAndVerifyClientCert
		}
	}
	server := webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){configure}})
	return server, net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// freePort replaces port 0 by a free one. controller-runtime takes 0 for its default port, so the port is looked for
// here; should another process take it in between, the server reports that it is in use.
func freePort(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("listen address: %w", err)
	}
	if port, err = strconv.Atoi(text); err != nil || port != 0 {
		return host, port, err
	}
	l, err := net.Listen("tcp", address) //nolint:noctx // closed at once
	if err != nil {
		return "", 0, fmt.Errorf("look for a free port: %w", err)
	}
	_, text, err = net.SplitHostPort(l.Addr().String())
	if err = errors.Join(err, l.Close()); err != nil {
		return "", 0, fmt.Errorf("look for a free port: %w", err)
	}
	port, err = strconv.Atoi(text)
	return host, port, err
}

// run serves until ctx is done or a part fails, and waits until every part has stopped.
func (s *server) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.policies.run(ctx) })
	group.Go(func() error { return s.certs.Start(ctx) })
	group.Go(func() error { return s.webhook.Start(ctx) })
	group.Go(func() error { return s.readiness.run(ctx) })
	for _, e := range s.endpoints {
		group.Go(func() error { return e.run(ctx) })
		s.log.Info("serving", zap.String(logkeys.Name, e.name), zap.String(logkeys.Address, e.address()))
	}
	s.log.Info("serving", zap.String(logkeys.Name, "reviews"), zap.String(logkeys.Address, s.address), zap.String(logkeys.Path, validatePath))
	err := group.Wait()
	s.log.Info("stopped")
	return errors.Join(err, s.records.Close())
}
