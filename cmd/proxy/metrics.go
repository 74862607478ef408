package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"golang.org/x/net/netutil"

	"github.com/pipeguard/pipeguard/internal/logkeys"
)

func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// serveMetrics serves /metrics and more routes until stop is called; an empty address serves nothing.
func serveMetrics(address string, registry *prometheus.Registry, more func(*http.ServeMux), log *zap.Logger) (stop func() error, err error) {
	errorLog, err := zap.NewStdLogAt(log, zap.WarnLevel)
	if err != nil {
		return nil, err
	}
	return serveHTTP(address, func(mux *http.ServeMux) {
		mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
		more(mux)
	}, errorLog, func(address string) { log.Info("metrics served", zap.String(logkeys.Address, address)) })
}

// maxHTTPConnections are served at one time. Others wait, which takes nothing of the process.
const maxHTTPConnections = 64

// serveHTTP serves routes until stop is called; an empty address serves nothing. A nil errorLog is standard error.
func serveHTTP(address string, routes func(*http.ServeMux), errorLog *log.Logger, opened func(address string)) (stop func() error, err error) {
	if address == "" {
		return func() error { return nil }, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("open metrics address: %w", err)
	}
	mux := http.NewServeMux()
	routes(mux)
	// Any client that reaches the address may connect; the bounds keep that from slowing down the pipes.
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 2 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 30 * time.Second, MaxHeaderBytes: 4 << 10, ErrorLog: errorLog,
	}
	server.SetKeepAlivesEnabled(false) // a client that asks now and then would hold its place in between
	opened(listener.Addr().String())
	done := make(chan error, 1)
	go func() { done <- server.Serve(netutil.LimitListener(listener, maxHTTPConnections)) }()
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := server.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}
