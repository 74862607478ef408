package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/pipeguard/pipeguard/internal/admission/intake"
	"github.com/pipeguard/pipeguard/internal/httpsclient"
)

const (
	// helloTime bounds a handshake, and the time for the head of a request.
	helloTime = 5 * time.Second
	// requestTime and answerTime bound the rest, where a handler does not set its own.
	requestTime, answerTime = 30 * time.Second, time.Minute
	// idleTime is that of the API server's side. To be the first to close a connection means to close it under a request now and
	// then; where room is wanting, those that are idle make it.
	idleTime = 90 * time.Second
	// maxHead bounds the head of a request.
	maxHead = 16 << 10
	// stopTime is how long requests may take to finish at a stop.
	stopTime = time.Minute
	// probeTime bounds the look at whether the server answers.
	probeTime = 10 * time.Second
)

// webServer answers reviews. controller-runtime's server listens by itself, without bounds; here it only counts requests.
type webServer struct {
	webhook.Server
	listener *intake.Listener
	tls      *tls.Config
	log      *zap.Logger
}

// newWebhook binds the address.
func newWebhook(o options, certs certificates, reg prometheus.Registerer, log *zap.Logger) (*webServer, error) {
	// HTTP/2 is not offered: hundreds of streams on each connection are more than the bounds of connections and bodies count.
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certs.GetCertificate, NextProtos: []string{"http/1.1"}}
	if o.Certificate.ClientCAFile != "" {
		var err error
		if c.ClientCAs, err = httpsclient.CertPool(o.Certificate.ClientCAFile); err != nil {
			return nil, fmt.Errorf("read client authorities: %w", err)
		}
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	l, err := net.Listen("tcp", o.ListenAddress) //nolint:noctx // binding does not wait
	if err != nil {
		return nil, fmt.Errorf("serve reviews: %w", err)
	}
	w := &webServer{Server: webhook.NewServer(webhook.Options{}), listener: intake.Bound(l), tls: c, log: log}
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "pipeguard_webhook_connections", Help: "Connections to the port of reviews that are open.",
		}, func() float64 { return float64(w.listener.Open()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "pipeguard_webhook_connections_closed_total", Help: "Connections to the port of reviews that were closed because there were too many.",
		}, func() float64 { return float64(w.listener.Closed()) }),
	)
	return w, nil
}

func (w *webServer) address() string { return w.listener.Addr().String() }

// Start serves until ctx is done, and lets requests in flight finish.
func (w *webServer) Start(ctx context.Context) error {
	server := &http.Server{
		Handler:           w.WebhookMux(),
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) }, // a stop ends no request
		ConnState:         w.listener.State,
		ErrorLog:          connectionLog(w.log),
		ReadHeaderTimeout: helloTime,
		ReadTimeout:       requestTime,
		WriteTimeout:      answerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHead,
	}
	return serveUntil(ctx, server, tls.NewListener(w.listener, w.tls), stopTime)
}

// serveUntil serves until ctx is done, and lets requests in flight finish in the given time.
func serveUntil(ctx context.Context, server *http.Server, l net.Listener, finish time.Duration) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), finish)
		defer cancel()
		stopped <- server.Shutdown(deadline)
	})
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	return <-stopped
}

// answers says whether a client is answered with a certificate.
func (w *webServer) answers() error {
	address := w.address()
	host, port, err := net.SplitHostPort(address)
	if err == nil && net.ParseIP(host).IsUnspecified() {
		address = net.JoinHostPort("localhost", port)
	}
	// #nosec G402 -- whether the certificate is the right one is seen elsewhere
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: probeTime}, "tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:noctx // bounded
	if err != nil {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	return conn.Close()
}
