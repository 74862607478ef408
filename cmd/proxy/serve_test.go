//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	system "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"

	"github.com/pipeguard/pipeguard/test/harness"
)

// program is a running proxy.
type program struct {
	sockets string
	stdout  *harness.Output
	stderr  *harness.Output
	stop    func() int
}

func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	dir, err := os.MkdirTemp("", "p") // a test's own directory has a long name, and that of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	sockets := filepath.Join(dir, "s")
	p := &program{sockets: sockets, stdout: new(harness.Output), stderr: new(harness.Output)}
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	go func() { code <- run(ctx, append([]string{"--socket-dir", sockets}, args...), p.stdout, p.stderr) }()
	p.stop = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() { p.stop() })
	p.stderr.Await(t, 1, `"msg":"serving"`)
	return p
}

func (p *program) client(t *testing.T, gv string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("unix:"+filepath.Join(p.sockets, "csi-proxy-"+gv+".sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// configFor allows this test's own program what it lists.
func configFor(t *testing.T, operations string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	text := fmt.Sprintf("apiVersion: pipeguard.dev/v1alpha1\nkind: ProxyConfig\nacl:\n  rules:\n    - name: this-test\n      pipes: [\"filesystem-*\"]\n      operations: [%s]\n      callers: [{user: \"uid:%d\", exe: %q}]\n",
		operations, os.Getuid(), exe)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestServesDriversAndRecordsThem(t *testing.T) {
	p := startProgram(t, "--config", configFor(t, "Mkdir, PathExists"), "-metrics-bind-address", "127.0.0.1:0", "-v", "1")
	ctx := t.Context()
	alpha := v1alpha1.NewFilesystemClient(p.client(t, "filesystem-v1alpha1"))
	newer := v1.NewFilesystemClient(p.client(t, "filesystem-v1"))

	if _, err := alpha.Mkdir(ctx, &v1alpha1.MkdirRequest{Path: `C:\var\lib\kubelet\plugins\x`}); err != nil {
		t.Errorf("Mkdir by v1alpha1: %v", err)
	}
	if r, err := newer.PathExists(ctx, &v1.PathExistsRequest{Path: `c:\VAR\lib\kubelet\plugins\x`}); err != nil || !r.GetExists() {
		t.Errorf("what v1alpha1 made is not there for v1: %v, %v", r, err)
	}
	if _, err := newer.Mkdir(ctx, &v1.MkdirRequest{Path: `C:\var\lib\kubelet-evil\x`}); err == nil {
		t.Error("a path outside the working directories was made")
	}
	if _, err := alpha.LinkPath(ctx, &v1alpha1.LinkPathRequest{SourcePath: `C:\var\lib\kubelet\a`, TargetPath: `C:\var\lib\kubelet\b`}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("LinkPath: %v", err)
	}
	if _, err := system.NewSystemClient(p.client(t, "system-v1alpha1")).StopService(ctx, &system.StopServiceRequest{Name: "RpcSs"}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("StopService: %v", err)
	}
	checkMetrics(t, p)
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.stderr)
	}
	r := reconcile(t, filepath.Join(p.sockets, "audit"))
	if r.FaultCount != 0 || len(r.Open) != 0 || r.Intents != 3 || r.Terminals != 5 || r.Connections != 3 {
		t.Errorf("audit log: %+v", r)
	}
	if left, err := filepath.Glob(filepath.Join(p.sockets, "*.sock")); err != nil || len(left) != 0 {
		t.Errorf("sockets left after the stop: %q, %v", left, err)
	}
}

func checkMetrics(t *testing.T, p *program) {
	t.Helper()
	address := regexp.MustCompile(`"metrics served","address":"([^"]+)"`).FindStringSubmatch(p.stderr.String())
	if address == nil {
		t.Fatalf("no metrics address in:\n%s", p.stderr)
	}
	response, err := http.Get("http://" + address[1] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`grpc_server_started_total{grpc_method="Mkdir",grpc_service="v1alpha1.Filesystem",grpc_type="unary"} 1`,
		`grpc_server_handled_total{grpc_code="PermissionDenied",grpc_method="LinkPath",grpc_service="v1alpha1.Filesystem",grpc_type="unary"} 1`,
		`grpc_server_msg_received_total{grpc_method="PathExists",grpc_service="v1.Filesystem",grpc_type="unary"} 1`,
		`grpc_server_msg_sent_total{grpc_method="PathExists",grpc_service="v1.Filesystem",grpc_type="unary"} 1`,
		`grpc_server_handling_seconds_bucket{grpc_method="Mkdir",grpc_service="v1alpha1.Filesystem",grpc_type="unary",le="120"} 1`,
		`pipeguard_decisions_total{effect="deny",mode="Enforce",pipe="csi-proxy-system-v1alpha1"} 1`,
		"go_goroutines", "process_start_time_seconds",
	} {
		if !strings.Contains(string(body), want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

func TestWithoutConfigurationEveryCallIsDenied(t *testing.T) {
	p := startProgram(t, "--config", filepath.Join(t.TempDir(), "late.yaml"), "--audit-log", "-")
	if !strings.Contains(p.stderr.String(), "EVERY CALL WILL BE DENIED") {
		t.Errorf("the log does not say so:\n%s", p.stderr)
	}
	_, err := v1.NewFilesystemClient(p.client(t, "filesystem-v1")).PathExists(t.Context(), &v1.PathExistsRequest{Path: `C:\var\lib\kubelet`})
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("got %v", err)
	}
	p.stop()
	if !strings.Contains(p.stdout.String(), `"result":"denied"`) {
		t.Errorf("records on standard output: %s", p.stdout)
	}
}

func TestFaultsStopTheStart(t *testing.T) {
	directory := t.TempDir()
	bad := filepath.Join(directory, "bad.yaml")
	if err := os.WriteFile(bad, []byte("apiVersion: pipeguard.dev/v1alpha1\nkind: ProxyConfig\nalc: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"an unknown key", []string{"--config", bad}, "alc"},
		{"an unreadable configuration", []string{"--config", directory}, "read configuration"},
		{"an operation by its older name", []string{"--config", configFor(t, "LinkPath")}, "LinkPath"},
		{"an audit log that cannot be opened", []string{"--audit-log", directory}, "audit log"},
		{"a metrics address that is taken", []string{"-metrics-bind-address", taken.Addr().String()}, "metrics address"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stderr := new(harness.Output)
			sockets := filepath.Join(t.TempDir(), "s")
			if code := run(t.Context(), append([]string{"--socket-dir", sockets}, tt.args...), io.Discard, stderr); code != 1 {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(stderr.String(), tt.want) {
				t.Errorf("stderr does not say %q:\n%s", tt.want, stderr)
			}
			if left, _ := filepath.Glob(filepath.Join(sockets, "*.sock")); len(left) != 0 {
				t.Errorf("pipes were opened: %q", left)
			}
		})
	}
}

func TestSecondProxyDoesNotShareTheAuditLog(t *testing.T) {
	p := startProgram(t)
	stderr := new(harness.Output)
	sockets := filepath.Join(t.TempDir(), "s")
	code := run(t.Context(), []string{"--socket-dir", sockets, "--audit-log", filepath.Join(p.sockets, "audit")}, io.Discard, stderr)
	if code != 1 || !strings.Contains(stderr.String(), "another process writes to it") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}

func TestSecondProxyDoesNotStart(t *testing.T) {
	p := startProgram(t)
	stderr := new(harness.Output)
	code := run(t.Context(), []string{"--socket-dir", p.sockets, "--audit-log", filepath.Join(t.TempDir(), "other")}, io.Discard, stderr)
	if code != 1 || !strings.Contains(stderr.String(), "the name is taken") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
	_, err := v1.NewFilesystemClient(p.client(t, "filesystem-v1")).PathExists(t.Context(), &v1.PathExistsRequest{Path: `C:\var\lib\kubelet`})
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("the first one after that: %v", err)
	}
}

// A service that is told to stop has seconds, and a log to read may be of any length.
func TestAProxyThatIsStoppedWhileItReadsItsLogStopsInOrder(t *testing.T) {
	p := startProgram(t)
	if code := p.stop(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, p.stderr)
	}
	before := lines(t, filepath.Join(p.sockets, "audit"))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	stderr := new(harness.Output)
	if code := run(ctx, []string{"--socket-dir", p.sockets}, io.Discard, stderr); code != 0 || !strings.Contains(stderr.String(), `"msg":"stopped"`) {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
	if after := lines(t, filepath.Join(p.sockets, "audit")); after != before {
		t.Errorf("it wrote\n%s\nbehind\n%s", after, before)
	}
}
