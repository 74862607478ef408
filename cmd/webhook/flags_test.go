package main

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zapcore"

	"github.com/pipeguard/pipeguard/internal/configfile"
	"github.com/pipeguard/pipeguard/test/harness"
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
		"no mode":               {nil, exitUsage, "", "POD_NAMESPACE is empty"},
		"no such cluster":       {[]string{"--kubeconfig=/nonexistent/config"}, exitUsage, "", "POD_NAME is empty"},
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
		"--listen-address=9443", "--metrics-bind-address=:http", "--health-probe-bind-address=:70000", "--cert-dir=c", "--write-ca=w",
		"--standalone", "--log-level=loud", "--kubeconfig=k",
	}, &bytes.Buffer{}, &stderr)
	if code != exitUsage {
		t.Errorf("exit code %d, want %d", code, exitUsage)
	}
	for _, flag := range []string{
		"--kubeconfig is for a webhook in a cluster", "--listen-address ", "--metrics-bind-address ", "--health-probe-bind-address ",
		"--write-ca is for", "--log-level ",
	} {
		if !strings.Contains(stderr.String(), flag) {
			t.Errorf("nothing is said of %s in:\n%s", flag, stderr.String())
		}
	}
}

// A variable that is not set leaves a flag empty, which would take away what the file says.
func TestNoFlagIsEmpty(t *testing.T) {
	inCluster(t)
	names := regexp.MustCompile(`(?m)^ +--([a-z-]+) [a-z]`).FindAllStringSubmatch(newCommand(nil).Flags().FlagUsages(), -1)
	if len(names) < 12 {
		t.Errorf("only %d flags have a value: %q", len(names), names)
	}
	for _, name := range names {
		for value, want := range map[string]string{"": "it is empty", " \t": "it is empty", " -": "begins or ends with a blank"} {
			var stderr bytes.Buffer
			code := execute(t.Context(), []string{configFile(t, "params: p"), "--kubeconfig=/nonexistent/config", "--" + name[1] + "=" + value}, &bytes.Buffer{}, &stderr)
			if text := stderr.String(); code != exitUsage || !strings.Contains(text, "--"+name[1]) || !strings.Contains(text, want) {
				t.Errorf("exit code %d, %s", code, text)
			}
		}
	}
}

func TestTheFileIsCheckedAsAWholeWithLines(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	t.Setenv("POD_NAME", "")
	for name, c := range map[string]struct {
		fields string
		args   []string
		want   []string
	}{
		"in a cluster": {
			"cluster:\n  scanInterval: 1s\n  canaryNamespace: kube_system\ncertificate: {dir: d, certFile: f}\nlogLevel: loud", []string{"--namespaces=f", "--write-ca=w"},
			[]string{
				"POD_NAMESPACE is empty", "POD_NAME is empty", "webhook.yaml:4:17: cluster.scanInterval: 1s",
				`webhook.yaml:5:20: cluster.canaryNamespace: "kube_system"`, "webhook.yaml:6:14: certificate: certFile and keyFile",
				"webhook.yaml:6:14: certificate: dir and", "webhook.yaml:7:11: logLevel: ", "--namespaces is for --standalone", "--write-ca is for --standalone",
			},
		},
		"reports": {
			"reports: {standard: Reports, clusterRole: a/b}", nil,
			[]string{`reports.standard: "Reports": want None, PolicyReport or OpenReports`, `reports.clusterRole: "a/b" is no name of a ClusterRole`},
		},
		"a ClusterRole for nothing": {"reports: {clusterRole: r}", nil, []string{"webhook.yaml:3:24: reports.clusterRole: is for reports of a standard kind"}},
		"reports without a cluster": {"reports: {standard: OpenReports}", []string{"--standalone"}, []string{"webhook.yaml:3:10: reports: is for a webhook in a cluster"}},
		"without one": {
			"cluster: {serviceName: s}\ncertificate: {hosts: []}\nlistenAddress: 9443", []string{"--standalone", "--log-level=x"},
			[]string{"webhook.yaml:3:10: cluster: is for a webhook in a cluster", "webhook.yaml:4:22: certificate.hosts: is empty", "webhook.yaml:5:16: listenAddress: ", "--log-level "},
		},
		"an unknown key":      {"listen: x", nil, []string{`line 3: unknown key "listen"`}},
		"a key twice":         {"params: a\nparams: b", nil, []string{`line 4: key "params" is already defined`}},
		"a key of a template": {"params:", nil, []string{"webhook.yaml:3:8: params: has no value"}},
		"a blank value":       {"audit: {log: ' '}", nil, []string{"webhook.yaml:3:14: audit.log: has no value"}},
		"a key of two lines":  {"\"x\\nlevel=ERROR\\e[2J\": 1", nil, []string{`unknown key "x\nlevel=ERROR\x1b[2J"`}},
		"another kind":        {"---\napiVersion: pipeguard.dev/v1alpha1\nkind: ProxyConfig", nil, []string{"more than one document"}},
	} {
		var stderr bytes.Buffer
		if code := execute(t.Context(), append(c.args, configFile(t, c.fields)), &bytes.Buffer{}, &stderr); code != exitUsage {
			t.Errorf("%s: exit code %d, want %d", name, code, exitUsage)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%s: nothing is said of %s in:\n%s", name, want, stderr.String())
			}
		}
		if text := stderr.String(); strings.Contains(text, "<U+") || !strings.HasSuffix(text, "\nrun 'webhook --help' for usage\n") {
			t.Errorf("%s: not a line for each fault:\n%s", name, text)
		}
	}
	for name, text := range map[string]string{"no file": "", "an empty file": "\n", "another kind": "apiVersion: pipeguard.dev/v1alpha1\nkind: ProxyConfig\n"} {
		file := filepath.Join(t.TempDir(), "webhook.yaml")
		if text != "" {
			harness.Replace(t, file, text)
		}
		var stderr bytes.Buffer
		if code := execute(t.Context(), []string{"--standalone", "--config=" + file}, &bytes.Buffer{}, &stderr); code != exitUsage || !strings.Contains(stderr.String(), file) {
			t.Errorf("%s: exit code %d, %s", name, code, stderr.String())
		}
	}
}

func TestFlagsOverrideTheFileAndTheFileTheDefaults(t *testing.T) {
	inCluster(t)
	var got options
	cmd := newCommand(func(o options) error {
		got = o
		return nil
	})
	cmd.SetArgs([]string{configFile(t, "logLevel: warn\nparams: p\naudit: {required: true}\nbundles: {key: k}\ncluster: {leaderElect: false, scanInterval: 2m}"), "--log-level=error", "--listen-address=:1"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := options{configuration: defaultConfiguration(), podNamespace: "n", podName: "p", level: zapcore.ErrorLevel}
	want.APIVersion, want.Kind, want.LogLevel, want.Params, want.ListenAddress = configfile.APIVersion, configKind, "error", "p", ":1"
	want.Audit.Required, want.Cluster.LeaderElect, want.Cluster.ScanInterval = true, false, 2*time.Minute
	want.Bundles = bundleOptions{Key: "k", Pools: []string{"default"}, Namespace: "n", Serve: true}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(options{})); diff != "" {
		t.Error(diff)
	}
}
