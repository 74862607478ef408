package kill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/test/harness"
)

// patience is more than any step takes; reached only by a test that fails.
const patience = 30 * time.Second

// place is where the proxy lives: what it leaves there outlives it.
type place struct {
	exe, config, sockets, log, journal string
}

// newPlace has a proxy of its own, and an empty log.
func newPlace(t *testing.T) *place {
	t.Helper()
	exe, err := harness.Build(t.Context(), t.TempDir(), "./cmd/proxy")
	if err != nil {
		t.Fatal(err)
	}
	return placeOf(t, exe)
}

// placeOf is an empty log of a proxy that was built before.
func placeOf(t *testing.T, exe string) *place {
	t.Helper()
	dir, err := os.MkdirTemp("", "k") // a test's own directory has a long name, and that of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	in := func(name string) string { return filepath.Join(dir, name) }
	p := &place{exe: exe, config: in("proxy.yaml"), sockets: in("s"), log: in("audit"), journal: in("journal")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`apiVersion: pipeguard.dev/v1alpha1
kind: ProxyConfig
audit:
  segmentMiB: 1
acl:
  rules:
    - name: this-test
      pipes: ["filesystem-v1"]
      operations: [Mkdir, PathExists]
      callers: [{user: "uid:%d", exe: %q}]
`, os.Getuid(), self)
	if err := os.WriteFile(p.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) socket() string { return filepath.Join(p.sockets, "csi-proxy-filesystem-v1.sock") }

// proxy is one life of the program.
type proxy struct{ *harness.Process }

func (p *place) start(t *testing.T) *proxy {
	t.Helper()
	x, err := harness.Start("the proxy", exec.Command(p.exe, "--host", "memory", "--memory-journal", p.journal, "--socket-dir", p.sockets, "--config", p.config, "--audit-log", p.log))
	if err != nil {
		t.Fatal(err)
	}
	return &proxy{x}
}

// serves waits until the pipes are open; the error is that the proxy did not start.
func (x *proxy) serves(ctx context.Context) error {
	return x.Await(ctx, patience, func(context.Context) error {
		if !strings.Contains(x.Stderr.String(), `"msg":"serving"`) {
			return errors.New("it does not serve yet")
		}
		return nil
	})
}

func (x *proxy) await(t *testing.T) {
	t.Helper()
	if err := x.serves(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// end stops the process in order.
func (x *proxy) end(t *testing.T) {
	t.Helper()
	if err := x.Stop(patience); err != nil {
		t.Fatal(err)
	}
}
