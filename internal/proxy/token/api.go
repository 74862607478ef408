package token

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/json"

	"github.com/pipeguard/pipeguard/internal/filetrust"
)

// maxAnswer is in bytes. A review comes back with what was sent, and the groups and extra fields of a user.
const maxAnswer = 1 << 20

// client asks the API server. It speaks plain HTTPS, so that the proxy carries no client that could do more.
type client struct {
	api     API
	timeout time.Duration

	mu        sync.Mutex // guards what follows
	http      *http.Client
	authority []byte // what http was made with
}

// newClient reads the files once, so that a mistake in them stops the start.
func newClient(api API, timeout time.Duration) (*client, error) {
	c := &client{api: api, timeout: timeout}
	if _, err := c.connection(); err != nil {
		return nil, err
	}
	if api.TokenFile != "" {
		_, err := c.bearer()
		return c, err
	}
	_, err := c.certificate(nil)
	return c, err
}

// connection returns the client for the authority that the file holds now.
func (c *client) connection() (*http.Client, error) {
	authority, err := filetrust.Read(c.api.CAFile, maxAnswer)
	if err != nil {
		return nil, fmt.Errorf("api.caFile: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil && bytes.Equal(authority, c.authority) {
		return c.http, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("api.caFile: %s holds no certificate", c.api.CAFile)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	if c.api.CertFile != "" {
		config.GetClientCertificate = c.certificate
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	c.authority = authority
	c.http = &http.Client{
		Timeout: c.timeout,
		// No proxy, since what is sent holds tokens. No HTTP/2 either, which would go on to use a connection that is dead.
		Transport: &http.Transport{
			TLSClientConfig: config, DialContext: (&net.Dialer{Timeout: c.timeout}).DialContext,
			TLSHandshakeTimeout: c.timeout, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c.http, nil
}

func (c *client) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(c.api.CertFile, c.api.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("api.certFile: %w", err)
	}
	return &cert, nil
}

func (c *client) bearer() (Secret, error) {
	text, err := filetrust.ReadSmall(c.api.TokenFile, maxAnswer)
	if err != nil {
		return "", fmt.Errorf("api.tokenFile: %w", err)
	}
	token := strings.TrimSpace(string(text))
	for i := range len(token) {
		if token[i] <= ' ' || token[i] >= 0x7f {
			return "", fmt.Errorf("api.tokenFile: %s holds more than a token", c.api.TokenFile)
		}
	}
	if token == "" {
		return "", fmt.Errorf("api.tokenFile: %s is empty", c.api.TokenFile)
	}
	return Secret(token), nil
}

// create posts body to path and decodes the object that comes back. Its errors name the status and no content, since
// a review is sent back with the token that is in it.
func (c *client) create(ctx context.Context, path string, body []byte, into any) error {
	connection, err := c.connection()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.api.Server, "/")+path, bytes.NewReader(body))
	if err != nil {
		return errors.New("the API server's address is not one")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "pipeguard-proxy")
	if c.api.TokenFile != "" {
		token, err := c.bearer()
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+string(token))
	}
	response, err := connection.Do(request)
	if err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	defer func() {
		_ = response.Body.Close()
		if response.StatusCode == http.StatusUnauthorized {
			connection.CloseIdleConnections() // they may be of a certificate that has expired since
		}
	}()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case response.StatusCode != http.StatusCreated && response.StatusCode != http.StatusOK:
		return fmt.Errorf("the API server answered %d to POST %s", response.StatusCode, path)
	case err != nil:
		return fmt.Errorf("read the API server's answer: %w", err)
	case len(text) > maxAnswer:
		return fmt.Errorf("the API server's answer is longer than %d bytes", maxAnswer)
	}
	if strict, err := json.UnmarshalStrict(text, into, json.DisallowDuplicateFields); err != nil || len(strict) > 0 {
		return errors.New("the API server's answer is not the JSON that was asked for")
	}
	return nil
}
