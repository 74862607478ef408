package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/pipeguard/pipeguard/internal/httpsclient"
)

// status is the answer of the service at /status, as far as it is reported.
type status struct {
	Version string   `json:"version"`
	Schemas []string `json:"schemas"`
	Pipes   []string `json:"pipes"` // nil of an earlier release
	ACL     struct {
		Revision string `json:"revision"`
	} `json:"acl"`
	Audit struct {
		Key string `json:"key"` // verifier key of the log
	} `json:"audit"`
	Bundle *bundleStatus `json:"bundle"`
}

// bundleStatus is bundle.Status, as far as it is reported.
type bundleStatus struct {
	Revision       uint64    `json:"revision"`
	PolicyRevision string    `json:"policyRevision"`
	Audience       string    `json:"audience"`
	Key            string    `json:"key"`
	IssuedAt       time.Time `json:"issuedAt"`
	ExpiresAt      time.Time `json:"expiresAt"`
	Invalid        string    `json:"invalid"`
	Refused        *struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"refused"`
}

const (
	statusTimeout = 5 * time.Second
	maxAnswer     = 1 << 20 // bytes
)

var errNoAddress = errors.New("it opens no address to be asked at: see -metrics-bind-address")

// service asks a service that listens at an address, such as ":9187".
type service struct {
	url  string // empty if it listens nowhere
	http *http.Client
}

// newService finds the address at which this node reaches the service.
func newService(address string) (service, error) {
	asks, err := httpsclient.New(httpsclient.Options{Timeout: statusTimeout}) // it sends requests to the node itself alone
	if err != nil {
		return service{}, err
	}
	s := service{http: asks}
	if address == "" {
		return s, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return s, fmt.Errorf("address of the service: %w", err)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1" // what listens on every address listens on this one
	}
	s.url = "http://" + net.JoinHostPort(host, port) + "/status"
	return s, nil
}

func (s service) ask(ctx context.Context) (out status, err error) {
	if s.url == "" {
		return out, errNoAddress
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return out, err
	}
	defer s.http.CloseIdleConnections()
	answer, err := httpsclient.Do(s.http, request, maxAnswer)
	if err != nil {
		return out, err
	}
	if answer.Code != http.StatusOK {
		return out, fmt.Errorf("GET %s: %s", s.url, answer.Status)
	}
	if err := json.Unmarshal(answer.Body, &out); err != nil {
		return status{}, fmt.Errorf("GET %s: %w", s.url, err)
	}
	return out, nil
}
