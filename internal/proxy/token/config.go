package token

import (
	"errors"
	"fmt"
	"time"

	"github.com/pipeguard/pipeguard/internal/httpsclient"
)

// Method is how tokens are verified.
type Method string

// The methods.
const (
	// ByKeys verifies signatures with the cluster's published keys, without a request. A token that was revoked, since its pod
	// or service account is gone, holds until it expires; it is of use only to processes of that same pod on this node.
	ByKeys Method = "keys"
	// ByReview asks the API server (TokenReview), which knows of revocation.
	ByReview Method = "review"
)

// Config says which tokens are accepted. Zero durations stand for the defaults.
type Config struct {
	// Method is keys or review.
	Method Method `yaml:"method"`
	// Audience is the name by which tokens are made for this proxy, and for no other server: a token for the API server's own
	// audience would let the proxy act as its caller, and is refused unless it names this one too.
	Audience string `yaml:"audience"`
	// Node is this node's name in the cluster, as the kubelet registers it. Tokens of pods of other nodes are refused. The
	// proxy takes the computer's name in lower case, as kubelets do, if it is not set.
	Node string `yaml:"node"`
	// Issuer is the cluster's (--service-account-issuer). The method keys needs it; review compares it if it is set.
	Issuer string `yaml:"issuer"`
	// Keys is a file with the cluster's public keys, as GET /openid/v1/jwks of its API server gives them. An account that can
	// write it can pose as every caller. It is read again when it changes.
	Keys string `yaml:"keys"`
	// API is the API server. The method review needs it, and access reviews do.
	API API `yaml:"api"`
	// Leeway is by how much this node's clock may differ from the API server's, 10s if not set, at most 1m.
	Leeway time.Duration `yaml:"leeway"`
	// MaxLifetime is for how long a token may be made, 24h if not set. Projected tokens live for an hour unless the pod says otherwise.
	MaxLifetime time.Duration `yaml:"maxLifetime"`
	// AllowFor is how long an answer that allows holds before it is asked for again, 2m if not set, at most 10m: revoked
	// tokens and taken rights hold for as long.
	AllowFor time.Duration `yaml:"allowFor"`
	// DenyFor is how long an answer that refuses holds, 10s if not set, at most 1m. After a fault the API server is asked again as late as that.
	DenyFor time.Duration `yaml:"denyFor"`
	// StaleFor is how long the last answer that allows may stand in while the API server is away, for the same process and
	// token, 10m if not set, at most 1h. A token's own expiry ends it earlier.
	StaleFor time.Duration `yaml:"staleFor"`
	// Timeout is how long the API server may take to answer, 5s if not set, at most 30s.
	Timeout time.Duration `yaml:"timeout"`
}

// API says how to reach the API server. It is sent TokenReviews and SubjectAccessReviews, and the credentials
// should allow nothing else: system:auth-delegator is enough.
type API struct {
	// Server is its address, https://HOST:PORT.
	Server string `yaml:"server"`
	// CAFile holds the certificates, in PEM, that its own must be signed by. The system's are not trusted.
	CAFile string `yaml:"caFile"`
	// TokenFile holds this proxy's token. It, or a certificate, is needed. Files are read again when they change.
	TokenFile string `yaml:"tokenFile"`
	// CertFile and KeyFile hold this proxy's client certificate and its key, in PEM.
	CertFile string `yaml:"certFile"`
	KeyFile  string `yaml:"keyFile"`
}

// IsSet says whether any of it is set.
func (a API) IsSet() bool { return a != API{} }

// Check returns every fault of a configuration for which no verifier is made. The name of the node may be missing: the process knows it.
func (c Config) Check() error {
	if c.Node == "" {
		c.Node = "node"
	}
	_, err := c.complete()
	return err
}

// complete fills in the defaults and returns every fault.
func (c Config) complete() (Config, error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	switch c.Method {
	case ByKeys:
		if c.Keys == "" {
			fault("keys: the method %s needs the file with the cluster's public keys", ByKeys)
		}
		if c.Issuer == "" {
			fault("issuer: the method %s needs the name of the cluster that makes the tokens", ByKeys)
		}
	case ByReview:
		if c.Keys != "" {
			fault("keys: the method %s does not read it", ByReview)
		}
		if !c.API.IsSet() {
			fault("api: the method %s needs the API server", ByReview)
		}
	default:
		fault("method: %q is neither %s nor %s", c.Method, ByKeys, ByReview)
	}
	if c.Audience == "" {
		fault("audience: needs a value: a token that is made for every server proves nothing here")
	}
	if !isName(c.Node, maxName) {
		fault("node: %q is not the name of a node", c.Node)
	}
	for _, d := range []struct {
		name         string
		value        *time.Duration
		usual, limit time.Duration
	}{
		{"leeway", &c.Leeway, 10 * time.Second, time.Minute},
		{"maxLifetime", &c.MaxLifetime, 24 * time.Hour, 366 * 24 * time.Hour},
		{"allowFor", &c.AllowFor, 2 * time.Minute, 10 * time.Minute},
		{"denyFor", &c.DenyFor, 10 * time.Second, time.Minute},
		{"staleFor", &c.StaleFor, 10 * time.Minute, time.Hour},
		{"timeout", &c.Timeout, 5 * time.Second, 30 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.usual
		}
		if *d.value < 0 || *d.value > d.limit {
			fault("%s: %s: want more than 0 and at most %s", d.name, *d.value, d.limit)
		}
	}
	if c.API.IsSet() {
		faults = append(faults, c.API.check())
	}
	return c, errors.Join(faults...)
}

func (a API) check() error {
	var faults []error
	if _, err := httpsclient.ParseServer(a.Server); err != nil {
		faults = append(faults, fmt.Errorf("api.server: %w", err))
	}
	if a.CAFile == "" {
		faults = append(faults, errors.New("api.caFile: is missing: any server that answers could confirm every caller"))
	}
	if (a.CertFile == "") != (a.KeyFile == "") {
		faults = append(faults, errors.New("api.certFile, api.keyFile: one needs the other"))
	}
	if (a.TokenFile == "") == (a.CertFile == "") {
		faults = append(faults, errors.New("api: needs tokenFile, or certFile and keyFile, and not both"))
	}
	return errors.Join(faults...)
}
