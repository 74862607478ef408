package windows

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/test/bundletest"
)

// newBundle allows the driver's service account to list disks, and is for the pool default.
func newBundle(t *testing.T, key *bundle.Key, revision uint64) []byte {
	t.Helper()
	b, err := policyset.BundleSources{PolicyRevision: "sha256:0123456789abcdef", PipePolicies: []v1alpha1.PipePolicy{{
		ObjectMeta: metav1.ObjectMeta{Name: "azuredisk"},
		Spec: v1alpha1.PipePolicySpec{
			Pipes:    []v1alpha1.PipePattern{"csi-proxy-disk-*"},
			Subjects: []v1alpha1.Subject{{Name: "node", Namespace: "storage", ServiceAccounts: []string{"csi-node"}}},
		},
	}}}.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	b.Audience, b.Revision, b.IssuedAt = "default", revision, time.Now()
	b.ExpiresAt = b.IssuedAt.Add(time.Hour)
	raw, err := bundle.Build(b, key)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// bundleState is what /status says of bundles.
func bundleState(t *testing.T, address string) (s bundle.Status) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(callTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var answer *http.Response
		if answer, err = http.Get("http://" + address + "/status"); err != nil {
			continue
		}
		var text []byte
		text, err = io.ReadAll(answer.Body)
		var all struct{ Bundle bundle.Status }
		if err = errors.Join(err, answer.Body.Close(), json.Unmarshal(text, &all)); err == nil && (all.Bundle.Revision != 0 || all.Bundle.Refused != nil) {
			return all.Bundle
		}
	}
	t.Fatalf("status: %v", err)
	return s
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func TestABundleGuardsItsPipesUntilSomebodyTampersWithIt(t *testing.T) {
	key := bundletest.NewKey(t)
	driver, other := newPlace(t, "storage", "csi-node", "a"), newPlace(t, "team", "web", "b")
	dir := t.TempDir()
	keys, archive, kept := filepath.Join(dir, "bundle.key.pub"), filepath.Join(dir, "bundle.tar.gz"), filepath.Join(dir, "kept")
	good := newBundle(t, key, 7)
	if err := errors.Join(os.WriteFile(keys, key.PublicPEM(), 0o600), os.WriteFile(archive, good, 0o600)); err != nil {
		t.Fatal(err)
	}
	// The node's own rules would let everybody do everything, if they were asked.
	config := containers(t, ownUser(t), driver, other) + fmt.Sprintf("bundle: {pool: default, keys: %s, file: %s, dir: %s}\n", strconv.Quote(keys), strconv.Quote(archive), strconv.Quote(kept)) +
		"acl:\n  pipes: [{pipe: \"disk-*\", mode: LogOnly}]\n"
	t.Run("as it was signed", func(t *testing.T) {
		address := freeAddress(t)
		p := startWith(t, config, "-metrics-bind-address", address)
		if s := bundleState(t, address); s.Revision != 7 || s.Invalid != "" || s.Refused != nil || s.Key != key.ID() {
			t.Fatalf("status %+v", s)
		}
		who := newCaller(t, driver.job)
		who.open(diskPipe)
		who.expect("ListDiskIDs", "OK")
		if d := p.last("ListDiskIDs").Decision; d.Rule != "azuredisk/node" || d.Policy.Name != "bundle" || d.Policy.Bundle != 7 || d.Policy.Revision != "sha256:0123456789abcdef" {
			t.Errorf("decision %+v by %+v", d, d.Policy)
		}
		stranger := newCaller(t, other.job)
		stranger.open(diskPipe)
		stranger.expect("ListDiskIDs", "PermissionDenied", "PipePolicy azuredisk")
	})
	changed := bytes.Clone(good)
	changed[len(changed)/2] ^= 1
	older := newBundle(t, key, 6)
	for _, c := range []struct {
		name   string
		text   []byte
		reason bundle.Reason
	}{{"with a bit that is another", changed, bundle.ReasonArchive}, {"an older one", older, bundle.ReasonRollback}} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(archive, c.text, 0o600); err != nil {
				t.Fatal(err)
			}
			address := freeAddress(t)
			startWith(t, config, "-metrics-bind-address", address)
			var s bundle.Status
			for deadline := time.Now().Add(callTimeout); time.Now().Before(deadline) && s.Refused == nil; time.Sleep(10 * time.Millisecond) {
				s = bundleState(t, address)
			}
			if s.Revision != 7 || s.Invalid != "" || s.Refused == nil || s.Refused.Reason != c.reason {
				t.Errorf("status %+v, %+v", s, s.Refused)
			}
			who := newCaller(t, driver.job)
			who.open(diskPipe)
			who.expect("ListDiskIDs", "OK") // what was kept goes on
		})
	}
	t.Run("with what was kept gone too", func(t *testing.T) {
		if err := errors.Join(os.RemoveAll(kept), os.WriteFile(archive, changed, 0o600)); err != nil {
			t.Fatal(err)
		}
		address := freeAddress(t)
		startWith(t, config, "-metrics-bind-address", address)
		if s := bundleState(t, address); s.Revision != 0 || s.Invalid != bundle.ReasonNone {
			t.Errorf("status %+v", s)
		}
		who := newCaller(t, driver.job)
		who.open(diskPipe)
		who.expect("ListDiskIDs", "PermissionDenied", "no valid bundle")
	})
}
