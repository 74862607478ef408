//go:build !windows

package skew

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/test/harness"
)

const startLimit = 2 * time.Minute

// node is the directory of a proxy. It stays when the proxy is replaced by that of another release.
type node struct{ dir string }

func newNode(t *testing.T, config string) *node {
	t.Helper()
	dir, err := os.MkdirTemp(temporary, "n-") // short: paths of sockets have at most 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	n := &node{dir}
	harness.Replace(t, n.path("proxy.yaml"), "apiVersion: pipeguard.dev/v1alpha1\nkind: ProxyConfig\n"+strings.ReplaceAll(config, "DIR", dir))
	return n
}

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }

// serving is a proxy that runs on a node.
type serving struct {
	*harness.Process
	t     *testing.T
	node  *node
	pipes string
}

// start starts the proxy of a release on an invented machine, and waits until its pipes are open.
func (n *node) start(t *testing.T, r release) *serving {
	t.Helper()
	s := &serving{t: t, node: n, pipes: n.path("pipes")}
	if err := os.RemoveAll(s.pipes); err != nil {
		t.Fatal(err)
	}
	var err error
	s.Process, err = harness.Start("proxy of "+r.name, exec.Command(r.program("proxy"), "--host", "memory", "--socket-dir", s.pipes, "--config", n.path("proxy.yaml"),
		"--audit-log", n.path("audit"), "--metrics-bind-address", "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	if err := s.Await(t.Context(), startLimit, func(context.Context) error {
		_, err := os.Stat(filepath.Join(s.pipes, "csi-proxy-system-v1alpha1.sock"))
		if err == nil && metricsAddress.FindStringSubmatch(s.Stderr.String()) == nil {
			err = errors.New("no address for metrics yet")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// stop ends the proxy in order.
func (s *serving) stop() {
	s.t.Helper()
	if err := s.Stop(startLimit); err != nil {
		s.t.Fatal(err)
	}
}

// call makes a call with the program of a release, and returns what it says; it is allowed or denied.
func (s *serving) call(by release, pipe, method, request string) (said string, allowed bool) {
	s.t.Helper()
	stdout, stderr, code := by.run(s.t, "pipeguard", "call", "--socket-dir", s.pipes, "--pipe", pipe, method, request)
	if code != 0 && !strings.Contains(stderr, "PermissionDenied") {
		s.t.Fatalf("%s %s: exit code %d\n%s%s", pipe, method, code, stdout, stderr)
	}
	return stdout + stderr, code == 0
}

var metricsAddress = regexp.MustCompile(`"metrics served","address":"([^"]+)"`)

// status is what the proxy answers about itself.
type status struct {
	Version string   `json:"version"`
	Schemas []string `json:"schemas"`
	Bundle  struct {
		Revision       uint64 `json:"revision"`
		PolicyRevision string `json:"policyRevision"`
		Invalid        string `json:"invalid"`
		Refused        *struct{ Reason, Message string }
	} `json:"bundle"`
}

// address is that of metrics and status.
func (s *serving) address() string { return metricsAddress.FindStringSubmatch(s.Stderr.String())[1] }

// await asks the proxy about itself until it says what is wanted.
func (s *serving) await(what string, want func(status) bool) status {
	s.t.Helper()
	var last status
	if err := s.Await(s.t.Context(), startLimit, func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address()+"/status", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		last = status{}
		if err := json.NewDecoder(answer.Body).Decode(&last); err != nil {
			return err
		}
		if !want(last) {
			return fmt.Errorf("%+v", last)
		}
		return nil
	}); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
	return last
}

// uid is the user that this process, and so each caller, runs as.
func uid() string { return fmt.Sprint(os.Getuid()) }
