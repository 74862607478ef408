//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"

	"github.com/pipeguard/pipeguard/test/harness"
)

// upstreamEnv makes TestCallsArePassedOnToAnotherProcess the other process: a proxy with sockets in that directory.
const upstreamEnv = "PROXY_TEST_UPSTREAM"

func serveAsUpstream(t *testing.T, sockets string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is what is waited for
		cancel()
	}()
	if code := run(ctx, []string{"--socket-dir", sockets, "--host", "memory", "--config", configFor(t, "Mkdir, PathExists, CreateSymlink")}, io.Discard, os.Stderr); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// upstreamConfig allows what configFor allows, and has it done by the server of pipes up-*.
func upstreamConfig(t *testing.T, operations, exe string) string {
	t.Helper()
	file := configFor(t, operations)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Appendf(text, "backend: upstream\nupstream: {pipe: \"up-*\", exe: %q, groups: [filesystem]}\nforward: [{pipe: front, to: back, exe: %q}]\n", exe, exe)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCallsArePassedOnToAnotherProcess(t *testing.T) {
	if sockets := os.Getenv(upstreamEnv); sockets != "" {
		serveAsUpstream(t, sockets)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "u")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	behind := filepath.Join(dir, "s")
	cmd := exec.Command(exe, "-test.run=^TestCallsArePassedOnToAnotherProcess$")
	cmd.Env = append(os.Environ(), upstreamEnv+"="+behind)
	upstream := harness.Converse(t, cmd)
	t.Cleanup(upstream.End)
	upstream.Stderr.Await(t, 1, `"msg":"serving"`)

	p := startProgram(t, "--config", upstreamConfig(t, "Mkdir, PathExists, Rmdir", exe), "-metrics-bind-address", "127.0.0.1:0")
	ready := func() (string, int) {
		address := regexp.MustCompile(`"metrics served","address":"([^"]+)"`).FindStringSubmatch(p.stderr.String())
		response, err := http.Get("http://" + address[1] + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body), response.StatusCode
	}
	if body, code := ready(); code != http.StatusServiceUnavailable || !strings.Contains(body, "group filesystem") {
		t.Errorf("before the upstream is there: %d %s", code, body)
	}
	for _, version := range []string{"v1", "v1alpha1", "v2alpha1"} {
		if err := os.Symlink(filepath.Join(behind, "csi-proxy-filesystem-"+version+".sock"), filepath.Join(p.sockets, "up-filesystem-"+version+".sock")); err != nil {
			t.Fatal(err)
		}
	}
	for body, code := ready(); code != http.StatusOK; body, code = ready() {
		if t.Context().Err() != nil || strings.Contains(body, "refused") {
			t.Fatalf("not ready: %s", body)
		}
		time.Sleep(20 * time.Millisecond) // the next attempt comes by the clock
	}

	ctx := t.Context()
	alpha, newer := v1alpha1.NewFilesystemClient(p.client(t, "filesystem-v1alpha1")), v1.NewFilesystemClient(p.client(t, "filesystem-v1"))
	made := 0
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) { // one version of the group answers, and another is left alone for up to a second
		made++
		_, err := alpha.Mkdir(ctx, &v1alpha1.MkdirRequest{Path: `C:\var\lib\kubelet\x`})
		if err == nil {
			break
		}
		if status.Code(err) != codes.Unavailable || time.Since(began) > time.Minute {
			t.Fatalf("Mkdir: %v", err)
		}
	}
	if r, err := newer.PathExists(ctx, &v1.PathExistsRequest{Path: `C:\var\lib\kubelet\x`}); err != nil || !r.GetExists() {
		t.Errorf("PathExists: %v, %v", r, err)
	}
	_, err = newer.Rmdir(ctx, &v1.RmdirRequest{Path: `C:\var\lib\kubelet\x`})
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "csi-proxy-filesystem-v1") {
		t.Errorf("what the upstream refuses: %v", err)
	}
	if _, err = newer.CreateSymlink(ctx, &v1.CreateSymlinkRequest{SourcePath: `C:\var\lib\kubelet\x`, TargetPath: `C:\var\lib\kubelet\y`}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("what the upstream would allow, and this proxy does not: %v", err)
	}
	if _, err := os.Stat(filepath.Join(p.sockets, "front.sock")); err != nil {
		t.Errorf("the forwarded pipe: %v", err)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.stderr)
	}
	if r := reconcile(t, filepath.Join(p.sockets, "audit")); r.FaultCount != 0 || len(r.Open) != 0 || r.Intents != 2+made || r.Terminals != 3+made {
		t.Errorf("audit log: %+v", r)
	}
}
