package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/pipeguard/pipeguard/internal/admission/intake"
)

// endpoint serves health or metrics over plain HTTP.
type endpoint struct {
	name     string
	listener net.Listener
	server   *http.Server
}

// newEndpoints binds the addresses that are not turned off.
func newEndpoints(o options, registry *prometheus.Registry, ready http.Handler, log *zap.Logger) ([]*endpoint, error) {
	health := http.NewServeMux()
	health.HandleFunc("GET /healthz", ok)
	health.Handle("GET /readyz", ready)
	metrics := http.NewServeMux()
	metrics.Handle("GET /metrics", promhttp.HandlerFor(prometheus.Gatherers{registry, ctrlmetrics.Registry}, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4,
		Timeout:             10 * time.Second,
	}))
	var out []*endpoint
	for _, e := range []struct {
		name, address string
		handler       http.Handler
	}{{"health", o.HealthProbeBindAddress, health}, {"metrics", o.MetricsBindAddress, metrics}} {
		if e.address == "0" {
			continue
		}
		l, err := net.Listen("tcp", e.address) //nolint:noctx // binding does not wait
		if err != nil {
			for _, bound := range out {
				err = errors.Join(err, bound.listener.Close())
			}
			return nil, fmt.Errorf("serve %s: %w", e.name, err)
		}
		bounded := intake.Bound(l)
		out = append(out, &endpoint{e.name, bounded, &http.Server{
			Handler:           e.handler,
			ConnState:         bounded.State,
			ErrorLog:          connectionLog(log),
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      20 * time.Second,
			IdleTimeout:       time.Minute,
			MaxHeaderBytes:    16 << 10,
		}})
	}
	return out, nil
}

func (e *endpoint) address() string { return e.listener.Addr().String() }

// run serves until ctx is done, and lets requests in flight finish.
func (e *endpoint) run(ctx context.Context) error {
	if err := serveUntil(ctx, e.server, e.listener, 5*time.Second); err != nil {
		return fmt.Errorf("serve %s: %w", e.name, err)
	}
	return nil
}
