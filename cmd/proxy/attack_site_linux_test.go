package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	diskapi "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/test/bundletest"
	"github.com/pipeguard/pipeguard/test/harness"
)

// site is where a proxy finds its bundle and keeps it.
type site struct {
	t                          *testing.T
	key                        *bundle.Key
	keys, archive, kept, rules string
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, key: bundletest.NewKey(t), keys: filepath.Join(dir, "key.pub"), archive: filepath.Join(dir, "bundle.tar.gz"), kept: filepath.Join(dir, "kept"), rules: configFor(t, "PathExists")}
	s.write(s.keys, s.key.PublicPEM())
	// The node's own rules would let everybody do everything to disks, if they were asked.
	text := strings.Replace(read(t, s.rules), "acl:\n", "acl:\n  pipes: [{pipe: \"disk-*\", mode: LogOnly}]\n", 1)
	s.write(s.rules, fmt.Appendf(nil, "%sbundle: {pool: default, keys: %q, file: %q, dir: %q}\n", text, s.keys, s.archive, s.kept))
	return s
}

func (s *site) write(file string, text []byte) {
	s.t.Helper()
	harness.Replace(s.t, file, string(text))
}

// build signs a bundle that guards disks, and nothing that this test's rules are for. It lives for an hour from now.
func (s *site) build(key *bundle.Key, revision uint64, change ...func(*bundle.Bundle)) []byte {
	s.t.Helper()
	b, err := policyset.BundleSources{PolicyRevision: "sha256:0123456789abcdef", PipePolicies: []v1alpha1.PipePolicy{{
		ObjectMeta: metav1.ObjectMeta{Name: "azuredisk"},
		Spec: v1alpha1.PipePolicySpec{
			Pipes:    []v1alpha1.PipePattern{"csi-proxy-disk-*"},
			Subjects: []v1alpha1.Subject{{Name: "node", Namespace: "storage", ServiceAccounts: []string{"csi-node"}}},
		},
	}}}.Bundle()
	if err != nil {
		s.t.Fatal(err)
	}
	b.Audience, b.Revision, b.IssuedAt = "default", revision, time.Now()
	b.ExpiresAt = b.IssuedAt.Add(time.Hour)
	for _, c := range change {
		c(&b)
	}
	raw, err := bundle.Build(b, key)
	if err != nil {
		s.t.Fatal(err)
	}
	return raw
}

func (s *site) start(t *testing.T) *program {
	t.Helper()
	return startProgram(t, "--config", s.rules, "-metrics-bind-address", "127.0.0.1:0")
}

// state is what /status says of bundles.
func (p *program) state(t *testing.T) bundle.Status {
	t.Helper()
	var all struct{ Bundle *bundle.Status }
	if _, text := p.get(t, "/status"); json.Unmarshal([]byte(text), &all) != nil || all.Bundle == nil {
		t.Fatalf("status %s", text)
	}
	return *all.Bundle
}

// until waits for a state.
func (p *program) until(t *testing.T, what string, is func(bundle.Status) bool) bundle.Status {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		s := p.state(t)
		if is(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: status %+v, %+v", what, s, s.Refused)
		}
	}
}

func (p *program) listDisks(t *testing.T) error {
	t.Helper()
	_, err := diskapi.NewDiskClient(p.client(t, "disk-v1")).ListDiskIDs(t.Context(), &diskapi.ListDiskIDsRequest{})
	return err
}

// decides checks that a bundle decides: its own pipes are closed to this test, and another is as the node's rules say.
func (p *program) decides(t *testing.T, revision uint64) {
	t.Helper()
	if got := p.pathExists(t); got != codes.OK {
		t.Errorf("a pipe that the bundle does not guard: %v", got)
	}
	if err := p.listDisks(t); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), fmt.Sprintf("PipePolicy azuredisk, policy sha256:0123456789ab, revision %d: ", revision)) {
		t.Errorf("a pipe that it guards: %v", err)
	}
	if code, text := p.get(t, "/readyz"); code != 200 {
		t.Errorf("not ready: %s", text)
	}
	for name, want := range map[string]string{"pipeguard_bundle_valid": "1", "pipeguard_bundle_revision": fmt.Sprint(revision)} {
		if got := p.metric(t, name+" "); got != name+" "+want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// shut checks that nothing decides.
func (p *program) shut(t *testing.T) {
	t.Helper()
	if got := p.pathExists(t); got != codes.PermissionDenied {
		t.Errorf("a pipe of the node's own rules: %v", got)
	}
	if err := p.listDisks(t); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "no valid bundle") {
		t.Errorf("a pipe that the node only watches: %v", err)
	}
	if code, text := p.get(t, "/readyz"); code != 503 || !strings.Contains(text, "every call is denied") {
		t.Errorf("ready: %d %s", code, text)
	}
	if got := p.metric(t, "pipeguard_bundle_valid "); got != "pipeguard_bundle_valid 0" {
		t.Error(got)
	}
}
