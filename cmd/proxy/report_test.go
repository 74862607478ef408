package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/test/bundletest"
)

func TestReportsNeedANodeCredentialsAndAServer(t *testing.T) {
	for name, c := range map[string]struct {
		f    installFlags
		want string // in the error; empty for none
	}{
		"no report":                   {installFlags{follow: true}, ""},
		"all that is needed":          {installFlags{follow: true, report: reportFlags{as: "win-1", credentials: "dir"}}, ""},
		"without credentials":         {installFlags{follow: true, report: reportFlags{as: "win-1"}}, "--report-credentials"},
		"without a node":              {installFlags{follow: true, report: reportFlags{credentials: "dir"}}, "--report-as"},
		"a server without a node":     {installFlags{follow: true, report: reportFlags{to: "https://x"}}, "--report-as"},
		"an installation that ends":   {installFlags{report: reportFlags{as: "win-1", credentials: "dir"}}, "--follow"},
		"health of one that ends":     {installFlags{healthAddress: ":1"}, "--health-address needs --follow"},
		"credentials of one that end": {installFlags{report: reportFlags{credentials: "dir"}}, "--follow"},
	} {
		err := c.f.check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestReportsGoToTheServerOfTheContainersEnvironment(t *testing.T) {
	for _, c := range []struct{ to, host, port, want string }{
		{"", "10.0.0.1", "6443", "https://10.0.0.1:6443"}, {"", "fd00::1", "", "https://[fd00::1]:443"},
		{"https://api.example.com", "10.0.0.1", "6443", "https://api.example.com"}, {"", "", "", ""},
	} {
		t.Setenv("KUBERNETES_SERVICE_HOST", c.host)
		t.Setenv("KUBERNETES_SERVICE_PORT", c.port)
		got, err := (&reportFlags{to: c.to}).server()
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	var r reports
	fault := func() error { return nil }
	say := func(string, ...any) {}
	if err := r.prepare(reportFlags{as: "win-1", credentials: "dir"}, ":9187", fault, say); err == nil {
		t.Error("reports to nowhere")
	}
	if err := r.prepare(reportFlags{as: "WIN 1", credentials: "dir", to: "https://x"}, ":9187", fault, say); err == nil || r.reporter != nil {
		t.Errorf("a node of any name: %v", err)
	}
	if err := r.prepare(reportFlags{}, "", fault, say); err != nil || r.reporter != nil {
		t.Errorf("nothing is asked for: %v", err)
	}
	r.begin(t.Context())
	r.running.Wait()
}

func TestOnlyPublicKeysGoToANode(t *testing.T) {
	key := bundletest.NewKey(t)
	private := bundletest.PrivatePEM(t, key)
	file := filepath.Join(t.TempDir(), "keys")
	for name, c := range map[string]struct {
		text []byte
		good bool
	}{
		"a key": {key.PublicPEM(), true}, "two": {append(key.PublicPEM(), key.PublicPEM()...), true},
		"none": {nil, false}, "the private half": {[]byte(private), false}, "text": {[]byte("x"), false}, "too much": {make([]byte, 1<<20), false},
	} {
		if err := os.WriteFile(file, c.text, 0o600); err != nil {
			t.Fatal(err)
		}
		text, err := readBundleKeys(file)
		if (err == nil) != c.good || c.good && string(text) != string(c.text) || err != nil && strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, err := readBundleKeys(file + ".none"); err == nil {
		t.Error("a file that is not there")
	}
}

func TestWhatAServiceTakesOverAtItsStartAloneRestartsIt(t *testing.T) {
	const head = "apiVersion: pipeguard.dev/v1alpha1\nkind: ProxyConfig\n"
	const bundled = "bundle: {pool: default, keys: 'C:\\k', file: 'C:\\b'}\n"
	for name, c := range map[string]struct {
		before, after string
		want          bool
	}{
		"the same":                 {head, head, false},
		"another access list":      {head, head + "acl: {pipes: [{pipe: '*', mode: LogOnly}]}\n", false},
		"the first bundle":         {head, head + bundled, true},
		"no bundle any more":       {head + bundled, head, true},
		"another pool":             {head + bundled, head + strings.Replace(bundled, "default", "other", 1), true},
		"a limit":                  {head, head + "limits: {connections: 5}\n", true},
		"one that cannot be read":  {"x", head, true},
		"one that was never there": {"", head, true},
	} {
		if got := needsRestart([]byte(c.before), []byte(c.after)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
