package windows

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/filetrust"
	"github.com/pipeguard/pipeguard/test/bundletest"
	"github.com/pipeguard/pipeguard/test/harness"
)

// guardedNodes is an API server that takes one report after the other.
type guardedNodes struct {
	mu     sync.Mutex // guards stored
	stored map[string]any
}

func (g *guardedNodes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer secret" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.Method == http.MethodGet && g.stored == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if r.Method != http.MethodGet {
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &g.stored); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
	}
	_ = json.NewEncoder(w).Encode(g.stored)
}

// says waits until the node has reported a state and a revision.
func (g *guardedNodes) says(t *testing.T, state string, revision float64) {
	t.Helper()
	for deadline := time.Now().Add(callTimeout); ; time.Sleep(100 * time.Millisecond) { // another process is waited for
		g.mu.Lock()
		stored := g.stored
		g.mu.Unlock()
		b, _ := stored["bundle"].(map[string]any)
		if name, _ := stored["metadata"].(map[string]any); stored["state"] == state && b["revision"] == revision && name["name"] == "win-1" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the report is %v, want %s with revision %v", stored, state, revision)
		}
	}
}

// offer puts a bundle where the kubelet would.
func offer(t *testing.T, key *bundle.Key, file string, revision uint64) {
	t.Helper()
	harness.Replace(t, file, string(newBundle(t, key, revision)))
}

func TestABundleComesToTheServiceAndTheNodeReportsIt(t *testing.T) {
	s := newSite(t)
	key := bundletest.NewKey(t)
	api := &guardedNodes{}
	server := httptest.NewTLSServer(api)
	defer server.Close()
	dir := filepath.Dir(s.config)
	write := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ca.crt", []byte(harness.CertificatePEM(server.Certificate())))
	write("token", []byte("secret"))
	write("keys", key.PublicPEM())
	const data = `C:\ProgramData\Pipeguard\`
	t.Cleanup(func() { _ = os.RemoveAll(data + "bundles") }) // revisions that were seen
	s.rewrite("kind: ProxyConfig\n", "kind: ProxyConfig\nbundle: {pool: default, keys: '"+data+"bundle.key.pub', file: '"+data+"bundle.tar.gz'}\n")
	from := filepath.Join(dir, "from.tar.gz")
	offer(t, key, from, 5)

	s.following([]string{
		"--bundle-from", from, "--bundle-keys-from", filepath.Join(dir, "keys"),
		"--report-as", "win-1", "--report-credentials", dir, "--report-to", server.URL,
	}, "-metrics-bind-address", freeAddress(t))
	api.says(t, "Guarding", 5)
	s.works("decided by the node's own rules")
	for _, name := range []string{"bundle.key.pub", "bundle.tar.gz"} {
		if _, err := os.Stat(data + name); err != nil {
			t.Error(err)
		}
		if err := filetrust.Check(data + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	offer(t, key, from, 6)
	api.says(t, "Guarding", 6)
	if output, code := s.command("uninstall", "--purge"); code != 0 || !strings.Contains(output, `bundle.key.pub removed`) || !strings.Contains(output, `bundle.tar.gz removed`) {
		t.Errorf("uninstall: exit code %d\n%s", code, output)
	}
}
