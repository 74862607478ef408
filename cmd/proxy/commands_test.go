package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/winsvc"
)

func TestEveryCommandExplainsItself(t *testing.T) {
	for name := range subcommands {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{name, "--help"}, &stdout, &stderr); code != 0 || stderr.Len() != 0 {
			t.Errorf("%s: exit code %d, stderr %q", name, code, stderr.String())
		}
		for _, want := range []string{"proxy " + name, "Example", "Exit codes: 0"} {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("%s --help does not say %q:\n%s", name, want, stdout.String())
			}
		}
		stdout.Reset()
		if code := run(t.Context(), []string{name, "--no-such-flag"}, &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), "proxy "+name+" --help") {
			t.Errorf("%s with a wrong flag: exit code %d, %q", name, code, stderr.String())
		}
	}
	var help bytes.Buffer
	if _, err := parseFlags([]string{"--help"}, &help); err == nil {
		t.Error("no help")
	}
	for name := range subcommands {
		if !strings.Contains(help.String(), "  "+name+" ") {
			t.Errorf("the program's help does not name %s", name)
		}
	}
}

func TestServicesNeedAServiceManager(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is one")
	}
	for _, args := range [][]string{{"install"}, {"uninstall"}, {"status"}, {"install", "--follow", "--", "-v=1"}} {
		var stderr bytes.Buffer
		if code := run(t.Context(), args, io.Discard, &stderr); code != 1 || !strings.Contains(stderr.String(), "no Windows service manager") {
			t.Errorf("%q: exit code %d, %s", args, code, stderr.String())
		}
	}
}

func TestFlagsOfTheServiceAreCompletedAndChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		f    installFlags
		want []string
	}{
		"nothing given": {installFlags{name: "csiproxy", service: needed()}, append([]string{"-windows-service", "-config", configFile}, needed()...)},
		"a name": {installFlags{name: "other", service: needed()},
			append([]string{"-windows-service", "-service-name", "other", "-config", configFile}, needed()...)},
		"all given": {installFlags{name: "other", service: needed("-windows-service", "--service-name=other", "--config=x.yaml")},
			needed("-windows-service", "--service-name=other", "--config=x.yaml")},
		"the configuration's own place": {installFlags{name: "csiproxy", configFrom: "a.yaml", service: needed("--config", strings.ToUpper(configFile))},
			append([]string{"-windows-service"}, needed("--config", strings.ToUpper(configFile))...)},
	} {
		got, err := tt.f.serviceArgs()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	for name, f := range map[string]installFlags{
		"a flag that there is not":       {name: "csiproxy", service: needed("--allow-all")},
		"a flag without its value":       {name: "csiproxy", service: needed("-kubelet-path")},
		"an argument":                    {name: "csiproxy", service: needed("x")},
		"help":                           {name: "csiproxy", service: []string{"-h"}},
		"version":                        {name: "csiproxy", service: []string{"--version"}},
		"another name":                   {name: "csiproxy", service: needed("-service-name", "other")},
		"a configuration that is copied": {name: "csiproxy", configFrom: "a.yaml", service: needed("--config", "b.yaml")},
		"a relative directory":           {name: "csiproxy", service: needed("-kubelet-path=relative")},
		"no directory":                   {name: "csiproxy", service: needed("-kubelet-path=")},
		"a whole drive":                  {name: "csiproxy", service: needed(`-working-dir=C:\`)},
		"a share":                        {name: "csiproxy", service: needed(`-working-dir=\\srv\share`)},
		"an address without a port":      {name: "csiproxy", service: needed("-metrics-bind-address=x")},
		"a port that there is not":       {name: "csiproxy", service: needed("-metrics-bind-address=127.0.0.1:99999")},
		"a log without a directory":      {name: "csiproxy", service: needed("-logtostderr=false", "-log_file="+filepath.Join(t.TempDir(), "none", "x.log"))},
	} {
		if args, err := f.serviceArgs(); err == nil {
			t.Errorf("%s is accepted: %q", name, args)
		}
	}
}

func TestStatusSaysHowAServiceEnded(t *testing.T) {
	for name, tt := range map[string]struct {
		status winsvc.Status
		code   int
		says   []string
	}{
		"not installed": {winsvc.Status{}, 4, []string{"service csiproxy is not installed"}},
		"running": {winsvc.Status{Installed: true, State: winsvc.Running, StartType: "automatic", PID: 7, Command: `"C:\a b\csi-proxy.exe" -windows-service`}, 0,
			[]string{"RUNNING", "automatic", "7", `C:\a b\csi-proxy.exe`}},
		"refused its configuration": {winsvc.Status{Installed: true, State: winsvc.Stopped, ExitCode: 1066, ServiceExitCode: 3}, 3,
			[]string{"STOPPED", "1066, service-specific 3 (configuration)"}},
		"starting": {winsvc.Status{Installed: true, State: winsvc.StartPending}, 3, []string{"START_PENDING"}},
	} {
		s := describeStatus("csiproxy", tt.status)
		var out, asJSON bytes.Buffer
		if err := s.print(&out, "table"); err != nil {
			t.Fatal(err)
		}
		if err := s.print(&asJSON, "json"); err != nil || !strings.Contains(asJSON.String(), `"service": "csiproxy"`) {
			t.Errorf("%s: %s, %v", name, asJSON.String(), err)
		}
		if s.code() != tt.code {
			t.Errorf("%s: exit code %d", name, s.code())
		}
		for _, want := range tt.says {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is not in\n%s", name, want, out.String())
			}
		}
	}
	if got := versionOnDisk(t.Context(), "/bin/true"); got != "unknown" {
		t.Errorf("a program of another name was run: %s", got)
	}
}

func TestCheckConfig(t *testing.T) {
	sample := filepath.Join("..", "..", "config", "samples", "proxy.yaml")
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"check-config", sample}, &stdout, &stderr); code != 0 {
		t.Fatalf("the sample: exit code %d: %s", code, stderr.String())
	}
	for _, want := range []string{"azuredisk-node", "\nrevision sha256:", "\nmode volume-v1beta1 LogOnly\n", "\n  caller      user=S-1-5-18 exe=", "\nlimits 16 connections, 100 calls per second, 200 at once\n",
		"\n  paths       C:\\var\\lib\\kubelet\\plugins\\blob, ", "\n  limits      4 connections,", "\nrule smb@kube-system/csi-smb-node-sa:rest\n", "\nwarning " + sample + ":14:7: acl.pipes[0]",
		"\nnamed volume.FormatVolume user=S-1-5-18 exe=C:\\Program Files\\azuredisk\\azurediskplugin.exe\n", "they are in blob-node, smb@", "\npolicy is the built-in request policy\n"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is not in\n%s", want, stdout.String())
		}
	}
	text, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ old, new, says string }{
		"an unknown operation": {"- PathExists", "- PathExist", `"PathExist"`},
		"an unknown key":       {"acl:", "alc:", "alc"},
		"an unknown pipe":      {`"volume-*"`, `"volumes-*"`, "acl.rules[0].pipes[2]"},
	} {
		file := filepath.Join(t.TempDir(), "p.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), tt.old, tt.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		stderr.Reset()
		if code := run(t.Context(), []string{"check-config", file}, io.Discard, &stderr); code != 1 || !strings.Contains(stderr.String(), tt.says) {
			t.Errorf("%s: exit code %d: %s", name, code, stderr.String())
		}
	}
	for name, args := range map[string][]string{"no file": nil, "two files": {"a", "b"}} {
		if code := run(t.Context(), append([]string{"check-config"}, args...), io.Discard, io.Discard); code != 2 {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
	if code := run(t.Context(), []string{"check-config", filepath.Join(t.TempDir(), "none")}, io.Discard, io.Discard); code != 1 {
		t.Errorf("a file that is not there: exit code %d", code)
	}
}
