//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/test/harness"
)

const startLimit = 2 * time.Minute

// server is one that is measured.
type server struct {
	*harness.Process
	name, url string
	judges    bool // else it says yes
	client    *http.Client
	clear     func() error // what it needs besides; nil if it needs nothing
}

type servers []*server

func (all servers) stop() (err error) {
	for _, s := range all {
		s.client.CloseIdleConnections()
		s.Kill()
		if s.clear != nil {
			err = errors.Join(err, s.clear())
		}
	}
	return err
}

// Names of servers.
const (
	yesSayer   = "yes-sayer"
	pipeguard  = "Pipeguard"
	before     = "Pipeguard before"
	gatekeeper = "Gatekeeper"
)

// start starts what is measured. Those that run are returned with an error as well.
func (o options) start(ctx context.Context, dir string) (all servers, err error) {
	add := func(s *server, err error) error {
		if s != nil {
			all = append(all, s)
		}
		return err
	}
	if o.gatekeeper != "" {
		if err := add(startGatekeeper(ctx, o.gatekeeper, dir)); err != nil {
			return all, err
		}
	}
	if err := add(startYes(ctx)); err != nil {
		return all, err
	}
	if o.before != "" {
		if err := add(startWebhook(ctx, before, o.before, dir)); err != nil {
			return all, err
		}
	}
	return all, add(startWebhook(ctx, pipeguard, o.webhook, dir))
}

// newClient keeps its connections and speaks HTTP/1.1, as the API server does with a webhook behind a Service.
func newClient() *http.Client {
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}, MaxIdleConnsPerHost: 64, //nolint:gosec // programs that this one has started
	}}
}

// startYes starts this program as the server to compare with.
func startYes(ctx context.Context) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := harness.Start(yesSayer, exec.Command(self, "-yes")) //nolint:gosec // this program
	if err != nil {
		return nil, err
	}
	s := &server{Process: p, name: yesSayer, client: newClient()}
	return s, p.Await(ctx, startLimit, func(ctx context.Context) error {
		if s.url = strings.TrimSpace(p.Stdout.String()); s.url == "" {
			return errors.New("it does not serve")
		}
		return s.judgesAll(ctx)
	})
}

// parameters admit the driver in its namespace, as the chart's do.
const parameters = `
guardedPipes: ["csi-proxy*"]
requirement: PrivilegedOrAllowedNamespace
allowedNamespaces:
  kube-system: {serviceAccounts: [csi-azuredisk-node-sa]}
`

func startWebhook(ctx context.Context, name, exe, dir string) (*server, error) {
	file := filepath.Join(dir, "parameters.yaml")
	if err := os.WriteFile(file, []byte(parameters), 0o600); err != nil {
		return nil, err
	}
	command := exec.Command(exe, "--standalone", "--listen-address", "127.0.0.1:0", "--metrics-bind-address", "127.0.0.1:0", //nolint:gosec // our own program
		"--health-probe-bind-address", "127.0.0.1:0", "--write-ca", filepath.Join(dir, name+".pem"), "--params", file)
	command.Stdout = io.Discard // its records
	p, err := harness.Start(name, command)
	if err != nil {
		return nil, err
	}
	s := &server{Process: p, name: name, judges: true, client: newClient()}
	return s, p.Await(ctx, startLimit, func(ctx context.Context) error {
		address := harness.ServedAddresses(p.Stderr.Bytes())["reviews"]
		if s.url = "https://" + address + "/validate"; address == "" {
			return errors.New("it does not serve")
		}
		return s.judgesAll(ctx)
	})
}

// judgesAll sends each sample once.
func (s *server) judgesAll(ctx context.Context) error {
	all, err := samples()
	if err != nil {
		return err
	}
	for i := range all {
		if err := s.ask(ctx, &all[i]); err != nil {
			return fmt.Errorf("%s: %w", all[i].name, err)
		}
	}
	return nil
}
