package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// guarded lets no request leave this machine without TLS, unless that was asked for. The library alone would try plain HTTP on
// private addresses too, and follow a registry that redirects there.
type guarded struct {
	insecure bool
	http.RoundTripper
}

// errPlain is the refusal of a request.
var errPlain = errors.New("plain HTTP is for localhost alone, or with -insecure")

// RoundTrip sends a request.
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !g.insecure && !isLocal(r.URL.Hostname()) {
		return nil, fmt.Errorf("%s: %w", r.URL.Redacted(), errPlain)
	}
	return g.RoundTripper.RoundTrip(r)
}

// isLocal says whether a host is this machine.
func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// explained adds what to do to errors that a registry's words leave open.
func explained(err error, as name.Tag) error {
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w\nthe credentials of %s are those of docker login %[2]s, and need the right to push to %s", err, as.RegistryStr(), as.RepositoryStr())
	case http.StatusNotFound:
		return fmt.Errorf("%w\nsome registries (ECR) want the repository %s to be made first", err, as.RepositoryStr())
	}
	return err
}
