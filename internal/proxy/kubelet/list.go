package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/pipeguard/pipeguard/internal/filetrust"
)

const (
	maxList = 32 << 20 // bytes; a pod is at most 1.5 MB in the API server, and some 10 kB in life
	maxFile = 1 << 20  // bytes of a token, certificate or key
)

// list asks once, over a connection of its own: that happens once for each new pod, and leaves nothing behind.
func (c *Client) list(ctx context.Context) (pods, error) {
	config, err := c.trust()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: config, DialContext: c.dial, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the kubelet sends us elsewhere")
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if c.options.TokenFile != "" {
		token, err := filetrust.ReadSmall(c.options.TokenFile, maxFile)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", response.Status)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxList+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxList {
		return nil, fmt.Errorf("more than %d bytes", maxList)
	}
	return decodeList(content)
}

// trust reads who the kubelet must be, and who we are.
func (c *Client) trust() (*tls.Config, error) {
	authorities, err := filetrust.Read(c.options.CAFile, maxFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("%s has no certificates", c.options.CAFile)
	}
	config := &tls.Config{RootCAs: roots, ServerName: c.options.ServerName, MinVersion: tls.VersionTLS12}
	if c.options.CertFile == "" {
		return config, nil
	}
	certificate, err := filetrust.ReadSmall(c.options.CertFile, maxFile)
	if err != nil {
		return nil, err
	}
	key, err := filetrust.ReadSmall(c.options.KeyFile, maxFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("client certificate %s: %w", c.options.CertFile, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}
