package windows

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/audit/recorded"
	"github.com/pipeguard/pipeguard/test/harness"
)

// proxy is a proxy.exe with a working directory and a log of its own.
type proxy struct {
	t       *testing.T
	kubelet string // the working directory
	records string // the audit log
	config  string
	log     string // diagnostics
}

// rules allow this very program everything but Rmdir of filesystem v1, to look at volumes and the serial number,
// and the command line to ask whether a path exists.
const rules = `apiVersion: pipeguard.dev/v1alpha1
kind: ProxyConfig
acl:
  rules:
  - name: driver
    pipes: ["filesystem-v1alpha1", "filesystem-v1beta1", "filesystem-v1beta2", "filesystem-v2alpha1"]
    operations: ["*"]
    callers:
    - exe: %[1]s
  - name: driver-looks
    pipes: ["filesystem-v1"]
    operations: [PathExists, IsSymlink, Mkdir]
    callers:
    - exe: %[1]s
  - name: driver-counts
    pipes: ["volume-*", "system-v1alpha1"]
    operations: [ListVolumesOnDisk, GetBIOSSerialNumber]
    callers:
    - exe: %[1]s
  - name: command-line
    pipes: ["filesystem-v1"]
    operations: [PathExists]
    callers:
    - exe: %[2]s
`

func environment(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run test/windows/run.sh", name)
	}
	return value
}

// prepare makes the files of a proxy and starts nothing.
func prepare(t *testing.T) *proxy {
	t.Helper()
	dir := t.TempDir()
	p := &proxy{
		t: t, kubelet: filepath.Join(dir, "kubelet"), records: filepath.Join(dir, "audit"),
		config: filepath.Join(dir, "proxy.yaml"), log: filepath.Join(dir, "proxy.log"),
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(rules, strconv.Quote(self), strconv.Quote(environment(t, "PIPEGUARD_CLI")))
	if err := errors.Join(os.Mkdir(p.kubelet, 0o755), os.WriteFile(p.config, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			log, err := os.ReadFile(p.log)
			var lines []string
			for e, err := range recorded.Events(p.records) {
				lines = append(lines, fmt.Sprintf("%+v %+v %+v %v", e, e.Decision, e.Outcome, err))
			}
			t.Logf("the proxy's log (%v):\n%s\nthe last of %d records:\n%s", err, log, len(lines), strings.Join(lines[max(0, len(lines)-10):], "\n"))
		}
	})
	return p
}

func (p *proxy) arguments() []string {
	return []string{
		"-kubelet-path", p.kubelet, "--config", p.config, "--audit-log", p.records,
		"-log_file", p.log, "-logtostderr=false", "-v", "2",
	}
}

// start runs the proxy as a process until the test ends; more arguments come last.
func start(t *testing.T, more ...string) *proxy {
	t.Helper()
	p := prepare(t)
	process, err := harness.Start("the proxy", exec.Command(environment(t, "PIPEGUARD_PROXY"), append(p.arguments(), more...)...)) //nolint:gosec // the program under test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Kill()
		if output := process.Stdout.String() + process.Stderr.String(); output != "" {
			t.Logf("the proxy said:\n%s", output)
		}
	})
	p.awaitPipes(process)
	return p
}

// run runs a program to its end, also while the test cleans up, and returns what it printed and its exit code.
func run(t *testing.T, exe string, args ...string) (output string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*callTimeout)
	defer cancel()
	stdout, stderr, code, err := harness.Run(exec.CommandContext(ctx, exe, args...)) //nolint:gosec // the program under test
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return stdout + stderr, code
}

// versions are the served versions of the filesystem group.
var versions = []string{"v1alpha1", "v1beta1", "v1beta2", "v1", "v2alpha1"}

func pipePath(version string) string { return `\\.\pipe\csi-proxy-filesystem-` + version }

// awaitPipes returns once every pipe of the filesystem group can be opened.
func (p *proxy) awaitPipes(server *harness.Process) {
	p.t.Helper()
	for _, version := range versions {
		p.awaitPipe(pipePath(version), server)
	}
}

// awaitPipe returns once a pipe can be opened. It gives up when the server, if it is not nil, has ended.
func (p *proxy) awaitPipe(path string, server *harness.Process) {
	p.t.Helper()
	open := func(context.Context) error {
		conn, err := winio.DialPipe(path, nil)
		if err == nil {
			_ = conn.Close() // as containerd does when it resolves a mount: open, say nothing, leave
		}
		return err
	}
	await := harness.Await
	if server != nil {
		await = server.Await
	}
	if err := await(p.t.Context(), callTimeout, open); err != nil {
		p.t.Fatalf("%s: %v", path, err)
	}
}

// path is one below the working directory.
func (p *proxy) path(rel string) string { return filepath.Join(p.kubelet, rel) }

func (p *proxy) mkdir(rel string) {
	p.t.Helper()
	if err := os.MkdirAll(p.path(rel), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

// fill makes a directory that takes a while to empty.
func (p *proxy) fill(rel string, files int) {
	p.t.Helper()
	p.mkdir(rel)
	for i := range files {
		if err := os.WriteFile(filepath.Join(p.path(rel), strconv.Itoa(i)), nil, 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}

// has asks the disk itself.
func (p *proxy) has(rel string) bool {
	p.t.Helper()
	_, err := os.Lstat(p.path(rel))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.t.Fatal(err)
	}
	return err == nil
}

// events reads the audit log. Those of a call are there once its answer is.
func (p *proxy) events() []audit.Event {
	p.t.Helper()
	var events []audit.Event
	for event, err := range recorded.Events(p.records) {
		if err != nil {
			p.t.Fatal(err)
		}
		events = append(events, event)
	}
	return events
}

// lines are the raw records.
func (p *proxy) lines() string {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.records, "audit-*.jsonl"))
	if err != nil || len(files) == 0 {
		p.t.Fatalf("%q, %v", files, err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // of this test
		if err != nil {
			p.t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// terminal waits for the record that ends the request about a path, and returns it with its intent if it has one.
func (p *proxy) terminal(fullMethod, path string) (intent, end *audit.Event) {
	p.t.Helper()
	for deadline := time.Now().Add(callTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		intent, end = nil, nil
		for _, event := range p.events() {
			if event.Type != audit.TypeRequest || event.What == nil || event.What.FullMethod != fullMethod || !touches(event, path) {
				continue
			}
			if event.Stage == audit.StageRequestReceived {
				intent = &event
			} else {
				end = &event
			}
		}
		if end != nil {
			return intent, end
		}
	}
	p.t.Fatalf("no record ends %s of %s", fullMethod, path)
	return nil, nil
}

func touches(event audit.Event, path string) bool {
	for _, target := range event.What.Targets {
		if strings.EqualFold(target.Value, path) {
			return true
		}
	}
	return path == ""
}

// reconciles checks that the log has no gaps and that every intent was ended.
func (p *proxy) reconciles() {
	p.t.Helper()
	report, err := recorded.Reconcile(recorded.Events(p.records))
	if err != nil {
		p.t.Fatal(err)
	}
	if len(report.Faults) > 0 || len(report.Open) > 0 || report.Intents == 0 {
		p.t.Errorf("the audit log does not add up: %+v", report)
	}
}

// call starts a program that makes one call.
func (p *proxy) call(ctx context.Context, exe, method, path string) *harness.Process {
	p.t.Helper()
	command := exec.CommandContext(ctx, exe) //nolint:gosec // this binary or a copy of it
	command.Env = append(os.Environ(), "PIPEGUARD_CALL="+method, "PIPEGUARD_PATH="+path)
	process, err := harness.Start(method, command)
	if err != nil {
		p.t.Fatal(err)
	}
	return process
}
