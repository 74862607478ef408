// Package httpsclient makes HTTPS clients that verify the server by a CA file and authenticate with a token or certificate file.
package httpsclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/atmost"
)

const (
	// connectTime bounds the making of a connection, and its handshake once more.
	connectTime = 10 * time.Second
	// idleTime is shorter than servers' as a rule, so that a connection is not used at the moment at which the server closes it.
	idleTime = time.Minute
	// maxHead is of an answer, in bytes.
	maxHead = 16 << 10
)

// Options say how a server is known, and what is shown to it. Files are read again for each request or connection, so that they may be replaced.
type Options struct {
	// CAFile holds the certificates, in PEM, that the server's must be signed by. The system's authorities are believed only if it is empty.
	CAFile string
	// CADecides refuses a CAFile that other accounts can change (see filetrust.Read), and an empty one: the answers decide.
	CADecides bool
	// ServerName is the name in the server's certificate; empty means the host of the URL.
	ServerName string
	// OwnCertificate accepts a server whose certificate is itself one of CAFile's, whatever names it has: a server of this machine is
	// known by the certificate that lies here. Any other is verified as without it. It needs CAFile and ServerName.
	OwnCertificate bool
	// TokenFile holds a bearer token. It is sent over TLS alone.
	TokenFile string
	// CertFile and KeyFile hold a client certificate and its key, in PEM.
	CertFile, KeyFile string
	// Timeout bounds each request with its answer. Without it the request's context does.
	Timeout time.Duration
	// Dial makes connections; nil means TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// New returns a client that follows no redirects and asks no proxy. It reads the certificates once, so that a mistake in them stops the start.
func New(o Options) (*http.Client, error) {
	if o.CADecides && o.CAFile == "" {
		return nil, errors.New("CA file: want one: without it, any server with a certificate of an authority that the system trusts could decide")
	}
	if o.OwnCertificate && (o.CAFile == "" || o.ServerName == "") {
		return nil, errors.New("a server's own certificate: want a CA file that holds it, and the name of any other")
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: connectTime}).DialContext
	}
	t := &transport{o: o}
	_, err := t.current()
	if o.CertFile != "" {
		_, fault := t.certificate(nil)
		err = errors.Join(err, fault)
	}
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport: t, Timeout: o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// transport sends requests over connections that were made with what the files hold now.
type transport struct {
	o Options

	mu          sync.Mutex // guards the fields below
	authorities []byte     // that connections were made with
	connections *http.Transport
}

// current returns the connections for the authorities that the file holds now, and closes those for others.
func (t *transport) current() (*http.Transport, error) {
	var authorities []byte
	if t.o.CAFile != "" {
		var err error
		if authorities, err = readAuthorities(t.o.CAFile, t.o.CADecides); err != nil {
			return nil, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.connections != nil && bytes.Equal(authorities, t.authorities) {
		return t.connections, nil
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.o.ServerName}
	if t.o.CAFile != "" {
		var err error
		if settings.RootCAs, err = poolOf(t.o.CAFile, authorities); err != nil {
			return nil, err
		}
	}
	if t.o.OwnCertificate {
		own, err := certificatesOf(t.o.CAFile, authorities)
		if err != nil {
			return nil, err
		}
		settings.InsecureSkipVerify = true // #nosec G402 -- VerifyConnection verifies in its place, on every connection
		settings.VerifyConnection = verifier{settings.RootCAs, own, t.o.ServerName}.verify
	}
	if t.o.CertFile != "" {
		settings.GetClientCertificate = t.certificate
	}
	if t.connections != nil {
		t.connections.CloseIdleConnections()
	}
	// No HTTP/2, which would go on to use a connection that is dead.
	t.authorities, t.connections = authorities, &http.Transport{
		TLSClientConfig: settings, DialContext: t.o.Dial, TLSHandshakeTimeout: connectTime,
		IdleConnTimeout: idleTime, MaxIdleConnsPerHost: 4, MaxResponseHeaderBytes: maxHead,
	}
	return t.connections, nil
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	connections, own, err := t.prepare(r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	response, err := connections.RoundTrip(own)
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		connections.CloseIdleConnections() // they may be of a certificate that has expired since
	}
	return response, err
}

func (t *transport) prepare(r *http.Request) (*http.Transport, *http.Request, error) {
	connections, err := t.current()
	if err != nil || t.o.TokenFile == "" {
		return connections, r, err
	}
	if r.URL.Scheme != "https" {
		return nil, nil, errors.New("a token is sent over TLS alone")
	}
	token, err := ReadToken(t.o.TokenFile)
	if err != nil {
		return nil, nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return connections, r, nil
}

// CloseIdleConnections is what the client of the same method looks for.
func (t *transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.connections.CloseIdleConnections()
}

// Answer is a response that was read to its end.
type Answer struct {
	Code   int    // such as 200
	Status string // such as "200 OK"
	Header http.Header
	Body   []byte
}

// Do sends a request and reads the whole answer. A body of more than the given number of bytes is an error.
func Do(c *http.Client, r *http.Request, most int64) (Answer, error) {
	response, err := c.Do(r) // #nosec G704 -- the caller names the server
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := atmost.ReadAll(response.Body, most)
	if err != nil {
		return Answer{}, fmt.Errorf("read the answer %s: %w", response.Status, err)
	}
	return Answer{response.StatusCode, response.Status, response.Header, body}, nil
}
