package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

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
