package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestExecuteExitsWithTheCodeThatFits(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	here := []string{"--standalone", "--listen-address=127.0.0.1:0", "--metrics-bind-address=0", "--health-probe-bind-address=0"}
	for name, c := range map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"help":                  {[]string{"--help"}, 0, "--policy-dir directory", ""},
		"version":               {[]string{"--version"}, 0, "webhook v", ""},
		"stopped as asked":      {here, 0, "", `"msg":"stopped"`},
		"no mode":               {nil, exitUsage, "", "--pod-namespace is empty"},
		"no such cluster":       {[]string{"--pod-namespace=n", "--pod-name=p", "--kubeconfig=/nonexistent/config"}, exitFailure, "", "/nonexistent/config"},
		"a probe of nothing":    {[]string{"probe"}, exitUsage, "", "--url and --ca-file are needed"},
		"an unknown flag":       {[]string{"--standalon"}, exitUsage, "", "unknown flag"},
		"an argument":           {[]string{"--standalone", "x"}, exitUsage, "", "unknown command"},
		"a file that is absent": {append(here, "--params=/nonexistent/parameters.yaml"), exitFailure, "", "/nonexistent/parameters.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := execute(ended, c.args, &stdout, &stderr); code != c.code {
				t.Errorf("exit code %d, want %d; %s", code, c.code, stderr.String())
			}
			if !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("output %q and %q, want %q and %q in them", stdout.String(), stderr.String(), c.stdout, c.stderr)
			}
		})
	}
}

func TestTheCommandLineIsCheckedAsAWhole(t *testing.T) {
	var stderr bytes.Buffer
	code := execute(t.Context(), []string{
		"--listen-address=9443", "--metrics-bind-address=:http", "--health-probe-bind-address=:70000",
		"--cert-dir=c", "--tls-cert-file=f", "--write-ca=w", "--standalone", "--cert-hosts=", "--audit-log=", "--log-level=loud", "--kubeconfig=k",
	}, &bytes.Buffer{}, &stderr)
	if code != exitUsage {
		t.Errorf("exit code %d, want %d", code, exitUsage)
	}
	for _, flag := range []string{
		"--kubeconfig is for a webhook in a cluster", "--listen-address ", "--metrics-bind-address ", "--health-probe-bind-address ",
		"--tls-cert-file and --tls-private-key-file go together", "--cert-dir and --tls-cert-file exclude each other",
		"--write-ca is for", "--cert-hosts is empty", "--audit-log is empty", "--log-level ",
	} {
		if !strings.Contains(stderr.String(), flag) {
			t.Errorf("nothing is said of %s in:\n%s", flag, stderr.String())
		}
	}
}

func TestTheCommandLineOfAClusterIsCheckedAsAWhole(t *testing.T) {
	var stderr bytes.Buffer
	code := execute(t.Context(), []string{
		"--pod-namespace=", "--pod-name=", "--service-name=", "--cert-secret=", "--webhook-config=", "--policy-webhook-config=",
		"--scan-interval=1s", "--namespaces=f", "--write-ca=w",
	}, &bytes.Buffer{}, &stderr)
	if code != exitUsage {
		t.Errorf("exit code %d, want %d", code, exitUsage)
	}
	for _, flag := range []string{
		"--pod-namespace is empty", "--pod-name is empty", "--service-name is empty", "--cert-secret is empty", "--webhook-config is empty",
		"--policy-webhook-config is empty", "--scan-interval 1s", "--namespaces is for --standalone", "--write-ca is for --standalone",
	} {
		if !strings.Contains(stderr.String(), flag) {
			t.Errorf("nothing is said of %s in:\n%s", flag, stderr.String())
		}
	}
}
