//go:build linux

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/test/harness"
)

// get asks the running program's metrics address.
func (p *program) get(t *testing.T, path string) (code int, body string) {
	t.Helper()
	address := regexp.MustCompile(`"metrics served","address":"([^"]+)"`).FindStringSubmatch(p.stderr.String())
	if address == nil {
		t.Fatalf("no metrics address in:\n%s", p.stderr)
	}
	response, err := http.Get("http://" + address[1] + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// metric returns the lines of a metric.
func (p *program) metric(t *testing.T, name string) string {
	t.Helper()
	_, body := p.get(t, "/metrics")
	var lines []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, name) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}

func (p *program) pathExists(t *testing.T) codes.Code {
	t.Helper()
	_, err := v1.NewFilesystemClient(p.client(t, "filesystem-v1")).PathExists(t.Context(), &v1.PathExistsRequest{Path: `C:\var\lib\kubelet`})
	return status.Code(err)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReloadChangesTheAccessListAndKeepsTheLastGoodOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "late.yaml")
	p := startProgram(t, "--config", file, "-metrics-bind-address", "127.0.0.1:0")
	if got := p.pathExists(t); got != codes.PermissionDenied {
		t.Errorf("without a file: %v", got)
	}
	allowing := read(t, configFor(t, "PathExists"))
	harness.Replace(t, file, allowing)
	p.stderr.Await(t, 1, "access list reloaded")
	if got := p.pathExists(t); got != codes.OK {
		t.Errorf("with a file that allows: %v", got)
	}
	revision := p.metric(t, "pipeguard_config_info")
	for i, bad := range []string{strings.Replace(allowing, "PathExists", "PathExist", 1), allowing[:len(allowing)/2], "", "x: [\n"} {
		harness.Replace(t, file, bad)
		p.stderr.Await(t, i+1, "CONFIGURATION REFUSED")
		if got := p.pathExists(t); got != codes.OK {
			t.Errorf("after bad file %d: %v", i, got)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.stderr.Await(t, 1, "the file is gone")
	if got := p.pathExists(t); got != codes.OK {
		t.Errorf("after the file went: %v", got)
	}
	if got := p.metric(t, "pipeguard_config_info"); got != revision || !strings.HasSuffix(got, "} 1") {
		t.Errorf("revision %q, before the faults %q", got, revision)
	}
	want := "pipeguard_config_reloads_total{result=\"failure\"} 5\npipeguard_config_reloads_total{result=\"success\"} 1"
	if got := p.metric(t, "pipeguard_config_reloads_total"); got != want {
		t.Error(got)
	}
	harness.Replace(t, file, strings.Replace(allowing, "PathExists", "IsSymlink", 1))
	p.stderr.Await(t, 2, "access list reloaded")
	if got := p.pathExists(t); got != codes.PermissionDenied {
		t.Errorf("after a file that allows something else: %v", got)
	}
}

// untrustedConfigs put a configuration in place, in one step, that others can change, or that has calls decided by a file that they can.
func untrustedConfigs(t *testing.T) map[string]func(file, text string) {
	t.Helper()
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(open, "beside")
	harness.Replace(t, beside, "{}")
	for path, mode := range map[string]os.FileMode{open: 0o777, beside: 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	naming := func(setting string) func(string, string) {
		return func(file, text string) { harness.Replace(t, file, text+fmt.Sprintf(setting, beside)) }
	}
	return map[string]func(string, string){
		"the configuration, which everybody can write": func(file, text string) {
			harness.Replace(t, file+".open", text)
			if err := os.Chmod(file+".open", 0o666); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(file+".open", file); err != nil {
				t.Fatal(err)
			}
		},
		"requestPolicy.modules": func(file, text string) { harness.Replace(t, file, text+"requestPolicy: {modules: "+open+"}\n") },
		"containers.snapshot":   naming("containers: {endpoint: 'unix:///run/x.sock', snapshot: %s}\n"),
		"bundle.keys":           naming("bundle: {pool: p, url: 'https://localhost/bundles/p', keys: %s}\n"),
		"tokens.verify.keys":    naming("tokens: {verify: {method: keys, audience: a, issuer: i, node: n, keys: %s}, pipes: {disk-v1: required}}\n"),
	}
}

func TestAFileThatOthersCanChangeStopsTheStart(t *testing.T) {
	for name, change := range untrustedConfigs(t) {
		t.Run(name, func(t *testing.T) {
			file := configFor(t, "PathExists")
			change(file, read(t, file))
			stderr := new(harness.Output)
			code := run(t.Context(), []string{"--socket-dir", filepath.Join(shortDir(t), "s"), "--config", file}, io.Discard, stderr)
			if text := stderr.String(); code != 1 || !strings.Contains(text, "an account that can change it decides about calls") || !strings.Contains(text, "chmod go-w") {
				t.Errorf("exit code %d:\n%s", code, text)
			}
		})
	}
}

func TestAReloadRefusesAFileThatOthersCanChange(t *testing.T) {
	for name, change := range untrustedConfigs(t) {
		t.Run(name, func(t *testing.T) {
			file := configFor(t, "PathExists")
			p := startProgram(t, "--config", file)
			change(file, strings.Replace(read(t, file), "PathExists", "IsSymlink", 1))
			p.stderr.Await(t, 1, "CONFIGURATION REFUSED")
			if got := p.pathExists(t); got != codes.OK {
				t.Errorf("the access list that was loaded before does not go on to hold: %v", got)
			}
			if !strings.Contains(p.stderr.String(), "an account that can change it decides about calls") {
				t.Error(p.stderr)
			}
			if strings.HasPrefix(name, "the configuration") { // which is put right as the refusal says, with the same content
				if err := os.Chmod(file, 0o600); err != nil {
					t.Fatal(err)
				}
				p.stderr.Await(t, 1, "access list reloaded")
				if got := p.pathExists(t); got != codes.PermissionDenied {
					t.Errorf("the access list that nobody else can change does not hold: %v", got)
				}
			}
		})
	}
}

func TestAHangupReloadsAndKeysThatNeedARestartAreNamedOnce(t *testing.T) {
	file := configFor(t, "PathExists")
	p := startProgram(t, "--config", file)
	harness.Replace(t, file, read(t, file)+"limits: {connections: 9}\nlog: {maxBackups: 3}\n")
	for i := range 2 {
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		p.stderr.Await(t, i+1, "access list reloaded")
	}
	p.stop()
	if n := strings.Count(p.stderr.String(), `"name":["limits.connections","log.maxBackups"]`); n != 1 {
		t.Errorf("named %d times:\n%s", n, p.stderr)
	}
}

func TestHealthSaysWhatIsNotReady(t *testing.T) {
	p := startProgram(t, "--config", configFor(t, "PathExists"), "-metrics-bind-address", "127.0.0.1:0")
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := p.get(t, path); code != http.StatusOK || body != "ok\n" {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	state := &readiness{checks: []func() error{
		func() error { return nil },
		func() error { return fmt.Errorf("audit log: %w", os.ErrClosed) },
		noneStuck(func() int { return 2 }),
	}}
	want := []string{"pipes: not open", "audit log: file already closed", "host: 2 calls to WMI do not return"}
	for i, fault := range state.faults() {
		if fault.Error() != want[i] {
			t.Errorf("%q, want %q", fault, want[i])
		}
	}
	if response, err := http.Post("http://"+regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(p.stderr.String())+"/readyz", "", nil); err != nil || response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a POST: %v, %v", response, err)
	}
}

func TestTheConfigurationChoosesTheBackend(t *testing.T) {
	file := configFor(t, "PathExists")
	harness.Replace(t, file, read(t, file)+"backend: memory\n")
	p := startProgram(t, "--config", file)
	if got := p.pathExists(t); got != codes.OK {
		t.Errorf("%v", got)
	}
	harness.Replace(t, file, read(t, file)+"# other\n")
	other := configFor(t, "PathExists")
	harness.Replace(t, other, read(t, other)+"backend: windows\n")
	stderr := new(harness.Output)
	if code := run(t.Context(), []string{"--socket-dir", filepath.Join(t.TempDir(), "s"), "--config", other}, io.Discard, stderr); code != 1 ||
		!strings.Contains(stderr.String(), "host windows: this is not Windows") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}

func TestTheConfigurationNamesTheLogFile(t *testing.T) {
	file, log := configFor(t, "PathExists"), filepath.Join(t.TempDir(), "proxy.log")
	harness.Replace(t, file, read(t, file)+"log: {path: "+log+", eventLog: true}\n")
	stderr := new(harness.Output)
	sockets := filepath.Join(t.TempDir(), "s")
	if code := run(t.Context(), []string{"--socket-dir", sockets, "--config", file, "--audit-log", filepath.Dir(log)}, io.Discard, stderr); code != 1 {
		t.Errorf("exit code %d", code)
	}
	text := read(t, log)
	for _, want := range []string{"no event log", "access list loaded", "audit log", `"event":103`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if stderr.String() != "" {
		t.Errorf("stderr %s", stderr)
	}
}
