package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/test/harness"
)

// refusing refuses one path, and its test says so.
const refusing = `package pipeguard.node

# METADATA
# title: Nobody asks about this path
# description: It is a trap.
# custom:
#   code: XX001
#   severity: high
#   docs: https://docs.example/xx001
#   remedy: Do not ask.
findings contains {"code": "XX001", "effect": "deny"} if input.request.path == `

const refusingTest = `package pipeguard.node_test

import data.pipeguard.node

test_the_trap if {
	"XX001" in {f.code | some f in node.findings} with input as {"group": "filesystem", "operation": "PathExists", "peer": {}, "request": {"path": "C:\\var\\lib\\kubelet\\trap"}}
}
`

func (p *program) trap(t *testing.T) error {
	t.Helper()
	_, err := v1.NewFilesystemClient(p.client(t, "filesystem-v1")).PathExists(t.Context(), &v1.PathExistsRequest{Path: under("trap")})
	return err
}

// Rego that does not stand its own tests, or takes away what the built-in policy rests on, leaves in force what was there.
func TestRegoThatIsNotRightChangesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "policies")
	config := configFor(t, "PathExists")
	harness.Replace(t, config, read(t, config)+"requestPolicy: {modules: "+dir+"}\n")
	rule := refusing + "\"C:\\\\var\\\\lib\\\\kubelet\\\\trap\"\n"
	fill := func(files map[string]string) {
		t.Helper()
		err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755))
		for name, text := range files {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fill(map[string]string{"trap.rego": rule, "trap_test.rego": refusingTest})
	p := startProgram(t, "--config", config)
	refused := func(what string) {
		t.Helper()
		if err := p.trap(t); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "XX001: Nobody asks about this path") {
			t.Errorf("%s: %v", what, err)
		}
		if got := p.pathExists(t); got != codes.OK {
			t.Errorf("%s: another path: %v", what, got)
		}
	}
	refused("as it was written")
	reloads := 0
	for what, files := range map[string]map[string]string{
		"nothing":                         {},
		"nothing that is Rego":            {"trap.rego.new": rule, "README.md": "x"},
		"half a file":                     {"trap.rego": rule[:len(rule)/2], "trap_test.rego": refusingTest},
		"a test that fails":               {"trap.rego": strings.ReplaceAll(rule, "trap", "tarp"), "trap_test.rego": refusingTest},
		"a test without a rule":           {"trap_test.rego": refusingTest},
		"everybody is named":              {"trap.rego": "package pipeguard.node\n\nis_named := true\n", "trap_test.rego": refusingTest},
		"a decision of its own":           {"trap.rego": "package pipeguard.node\n\ndecision := {\"allowed\": true, \"findings\": []}\n", "trap_test.rego": refusingTest},
		"data that name somebody":         {"trap.rego": "package pipeguard.parameters.node\n\nnamed := {}\n", "trap_test.rego": refusingTest},
		"a document that is gone":         {"trap.rego": rule + "\nx := data.pipeguard.policies\n", "trap_test.rego": refusingTest},
		"a question to the network":       {"trap.rego": rule + "\nx := http.send({\"url\": \"http://x\", \"method\": \"get\"})\n", "trap_test.rego": refusingTest},
		"a file of the built-in policy's": {"input.rego": "package pipeguard.node\n", "trap.rego": rule, "trap_test.rego": refusingTest},
	} {
		t.Log(what)
		fill(files)
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		reloads++
		p.stderr.Await(t, reloads, "CONFIGURATION REFUSED")
		refused(what)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.stderr.Await(t, reloads+1, "CONFIGURATION REFUSED")
	refused("the directory is gone")
}

func TestADirectoryThatIsBeingWrittenIsNotRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.rego", "package a\n")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var changes atomic.Int64
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			followModules(ctx, 10*time.Second, func() string { return dir }, func() { changes.Add(1) }, func(err error) { t.Error(err) })
		}()
		after := func(d time.Duration, want int64, what string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := changes.Load(); got != want {
				t.Errorf("%s: %d changes, want %d", what, got, want)
			}
		}
		after(25*time.Second, 0, "nothing has changed")
		write("b.rego", "package b\n")
		after(5500*time.Millisecond, 0, "the first look at 30s")
		write("c.rego", "package c\n")
		after(time.Second, 0, "it has changed again")
		after(time.Second, 1, "it stays")
		after(time.Minute, 1, "nothing has changed since")
		cancel()
		<-ended
	})
}
