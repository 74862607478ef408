package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"sync"

	"github.com/pipeguard/pipeguard/internal/proxy/report"
)

// reportFlags are the node, the server and the credentials of reports about a node's state. Only the installer's pod has
// credentials: the service, which pods talk to, has none.
type reportFlags struct{ as, credentials, to string }

func (f *reportFlags) register(set *flag.FlagSet) {
	set.StringVar(&f.as, "report-as", "", "with --follow, `name` of the node whose state is reported to the cluster, in a GuardedNode")
	set.StringVar(&f.credentials, "report-credentials", "", "`directory` with the files token and ca.crt for reports")
	set.StringVar(&f.to, "report-to", "", "`address` of the API server; empty means that of the container's environment")
}

func (f *reportFlags) check() error {
	switch {
	case f.as == "" && (f.credentials != "" || f.to != ""):
		return errors.New("--report-credentials and --report-to need --report-as")
	case f.as != "" && f.credentials == "":
		return errors.New("--report-as needs --report-credentials")
	}
	return nil
}

// server is the API server's address as every container is told it:
// https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
func (f *reportFlags) server() (string, error) {
	if f.to != "" {
		return f.to, nil
	}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" {
		return "", errors.New("--report-to is not given, and KUBERNETES_SERVICE_HOST is not set")
	}
	return "https://" + net.JoinHostPort(host, cmp.Or(port, "443")), nil
}

// reports run beside an installation that is followed. The zero value reports nothing.
type reports struct {
	reporter *report.Reporter
	begun    bool
	running  sync.WaitGroup
}

// prepare reports faults of the flags. fault returns what keeps the installation from being as it should be.
func (r *reports) prepare(f reportFlags, service string, fault func() error, say func(string, ...any)) error {
	if f.as == "" {
		return nil
	}
	server, err := f.server()
	if err != nil {
		return err
	}
	r.reporter, err = report.New(report.Options{
		Node: f.as, Server: server, Credentials: f.credentials, Service: service, Fault: fault, Say: say,
	})
	return err
}

// begin starts reporting, once. The caller waits.
func (r *reports) begin(ctx context.Context) {
	if r.reporter == nil || r.begun {
		return
	}
	r.begun = true
	r.running.Go(func() { r.reporter.Run(ctx) })
}
