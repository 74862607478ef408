//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
	"github.com/pipeguard/pipeguard/internal/proxy/watch"
)

func TestATakenPipeStopsTheStart(t *testing.T) {
	dir, err := os.MkdirTemp("", "p")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	squatter, err := pipe.Listen("csi-proxy-disk-v1", pipe.Options{SocketDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = squatter.Close() })
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"--socket-dir", dir, "--host", "memory", "--audit-log", "-"}, io.Discard, &stderr)
	if code != 1 || !strings.Contains(stderr.String(), "open pipe csi-proxy-disk-v1") || !strings.Contains(stderr.String(), "the name is taken") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.sock"))
	if err != nil || len(left) != 1 {
		t.Errorf("pipes that are left: %q, %v", left, err)
	}
}

func TestAReplacedSocketIsSaid(t *testing.T) {
	dir, err := os.MkdirTemp("", "p")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	core, logged := observer.New(zapcore.DebugLevel)
	p := &proxyProgram{flags: &flags{socketDir: dir}, log: zap.New(core)}
	registry := newRegistry()
	opened, err := p.newPipes(registry)
	if err != nil {
		t.Fatal(err)
	}
	state := &readiness{checks: []func() error{opened.Fault}}
	listen := opened.listen(2, func() { state.open.Store(true) })
	open := func(name string) {
		t.Helper()
		l, err := listen(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
	open("csi-proxy-disk-v1")
	address := pipe.Address("csi-proxy-disk-v1", pipe.Options{SocketDir: dir})
	if err := errors.Join(os.Remove(address), os.WriteFile(address, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if faults := state.faults(); len(faults) != 1 {
		t.Fatalf("before all pipes are open: %v", faults)
	}
	if got := opened.now(state); got == nil || len(got) > 0 {
		t.Errorf("it serves %q before all are open", got)
	}
	open("csi-proxy-volume-v1")
	if got := opened.now(state); !slices.Equal(got, []string{"csi-proxy-disk-v1", "csi-proxy-volume-v1"}) {
		t.Errorf("it serves %q", got)
	}
	serving, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { opened.run(serving, t.Context()); close(ended) }()
	for deadline := time.Now().Add(20 * time.Second); len(state.faults()) == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond) // a file system sends no event
	}
	stop()
	<-ended
	if faults := state.faults(); len(faults) != 1 || !errors.Is(faults[0], pipe.ErrTaken) || !strings.Contains(faults[0].Error(), "csi-proxy-disk-v1") {
		t.Errorf("faults %v", faults)
	}
	if got := opened.now(state); !slices.Equal(got, []string{"csi-proxy-volume-v1"}) {
		t.Errorf("it serves %q, one of which leads elsewhere", got)
	}
	if n := logged.FilterField(event(121)).Len(); n != 1 {
		t.Errorf("%d lines with its number", n)
	}
}

func TestAPipeOfAnotherProcessIsFoundBesideOurs(t *testing.T) {
	dir, err := os.MkdirTemp("", "p")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	// The test's own process is the other one here; what serves as the proxy is a program of its own.
	old, err := pipe.Listen("csi-proxy-disk-v9", pipe.Options{SocketDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = old.Close() })
	said := &apartAs(t, otherProgram(t), "--socket-dir", dir, "--host", "memory", "--audit-log", filepath.Join(t.TempDir(), "audit")).Stderr
	said.Await(t, 1, `"event":122`)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"pipe":"csi-proxy-disk-v9"`, self} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%s is not in %s", want, said)
		}
	}
	if strings.Count(said.String(), `"event":122`) != 1 {
		t.Errorf("our own pipes are reported: %s", said)
	}
}

func TestPipesBehindTheProxyAreMeant(t *testing.T) {
	behind := isBehind(config.Proxy{Upstream: config.Upstream{Pipe: "CSI_Proxy-*-up"}, Forward: []config.Forward{{Pipe: "a", To: "CSIProxy.To"}}})
	for name, want := range map[string]bool{
		"csi_proxy-disk-v1-up": true, "CSI_PROXY-disk-v1-UP": true, "csiproxy.to": true,
		"csi_proxy--up": false, "csi_proxy-disk-v1": false, "csi-proxy-disk-v1": false, "csiproxy.to2": false, "a": false, "": false,
	} {
		if got := behind(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
	if isBehind(config.Proxy{})("csi-proxy-disk-v1") {
		t.Error("nothing is behind, and a pipe is meant")
	}
}

func TestStatusShowsPipesThatAreNotGuarded(t *testing.T) {
	found := []watch.Foreign{
		{Pipe: "csi-proxy-disk-v1", PID: 7, Program: `C:\proxy.exe`},
		{Pipe: "csi-proxy-disk-v2", PID: 8, Program: `C:\old\csi-proxy.exe`},
		{Pipe: "csi-proxy-disk-v1 ", Doubt: "its name is not opened"},
	}
	for _, service := range []uint32{7, 0} { // running, and not
		s := serviceStatus{Service: "csiproxy", Installed: service != 0, State: "RUNNING", PID: service, Unguarded: without(service, append([]watch.Foreign(nil), found...))}
		var out, asJSON bytes.Buffer
		if err := s.print(&out, "table"); err != nil {
			t.Fatal(err)
		}
		if err := s.print(&asJSON, "json"); err != nil || !strings.Contains(asJSON.String(), `"program": "C:\\old\\csi-proxy.exe"`) {
			t.Errorf("%s, %v", asJSON.String(), err)
		}
		var lines []string
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "NOT GUARDED") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		want := []string{`NOT GUARDED "csi-proxy-disk-v2": process 8, C:\old\csi-proxy.exe`, `NOT GUARDED "csi-proxy-disk-v1 ": who serves it is not known: its name is not opened`}
		if service == 0 {
			want = append([]string{`NOT GUARDED "csi-proxy-disk-v1": process 7, C:\proxy.exe`}, want...)
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Error(diff)
		}
	}
}

func TestPipesWithoutEffectAreSaid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	const text = "apiVersion: pipeguard.dev/v1alpha1\nkind: ProxyConfig\npipes: [{pipe: disk-v1, containerUser: true}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, "--host", "memory", "--audit-log", "-", "--config", file)
	p.stderr.Await(t, 1, "pipes: has no effect here")
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte(strings.Replace(text, "disk-v1", "disk-v7", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"check-config", bad}, io.Discard, &stderr); code != 1 || !strings.Contains(stderr.String(), ":3:16: pipes[0].pipe: pipe \"disk-v7\" covers no pipe") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

// failing is a listener whose Accept returns an error.
type failing struct {
	net.Listener
	err error
}

func (f failing) Accept() (net.Conn, error) { return nil, f.err }

func TestATakenNameHasThePipesExitCodeAndOtherFaultsKeepTheirType(t *testing.T) {
	_, err := accepting{failing{err: fmt.Errorf("x: %w", pipe.ErrTaken)}}.Accept()
	if code := serviceExitCode(fmt.Errorf("serve pipe: %w", err)); code != exitPipe || !errors.Is(err, pipe.ErrTaken) {
		t.Errorf("exit code %d of %v", code, err)
	}
	passing := &net.DNSError{IsTemporary: true}
	if _, err := (accepting{failing{err: passing}}).Accept(); err != error(passing) { //nolint:errorlint // gRPC looks at the type itself
		t.Errorf("got a %T", err)
	}
}

// The sockets that are there are the pipes of which /status says that they are served.
func TestTheStatusNamesThePipesThatAreServed(t *testing.T) {
	p := startProgram(t, "-metrics-bind-address", "127.0.0.1:0")
	sockets, err := filepath.Glob(filepath.Join(p.sockets, "*.sock"))
	if err != nil || len(sockets) != len(candidates()) {
		t.Fatalf("%q, %v", sockets, err)
	}
	var there []string
	for _, socket := range sockets {
		there = append(there, strings.TrimSuffix(filepath.Base(socket), ".sock"))
	}
	var got nodeState
	if code, text := p.get(t, "/status"); code != http.StatusOK || json.Unmarshal([]byte(text), &got) != nil {
		t.Fatalf("%d %s", code, text)
	}
	slices.Sort(there)
	if diff := cmp.Diff(there, got.Pipes); diff != "" {
		t.Errorf("(-there +status)\n%s", diff)
	}
}
