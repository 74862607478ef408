package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// httpsClient asks a server that is configured by its address, and trusts the authorities of caFile alone if there is one.
func httpsClient(caFile string) (*http.Client, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		text, err := os.ReadFile(caFile) // #nosec G304 -- the operator names it
		if err != nil {
			return nil, fmt.Errorf("caFile: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("caFile: no certificate in " + caFile)
		}
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: settings, ForceAttemptHTTP2: true, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 2 * time.Minute, MaxResponseHeaderBytes: 16 << 10,
	}}, nil
}
