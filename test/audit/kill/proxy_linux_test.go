package kill

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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
	exe := filepath.Join(t.TempDir(), "proxy")
	build := exec.Command("go", "build", "-o", exe, "github.com/pipeguard/pipeguard/cmd/proxy")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the proxy: %v\n%s", err, out)
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
type proxy struct {
	command *exec.Cmd
	serving chan struct{} // closed when the pipes are open
	said    chan string   // everything it logged, once it is gone
}

func (p *place) start(t *testing.T) *proxy {
	t.Helper()
	x := &proxy{serving: make(chan struct{}), said: make(chan string, 1)}
	x.command = exec.Command(p.exe, "--host", "memory", "--memory-journal", p.journal, "--socket-dir", p.sockets, "--config", p.config, "--audit-log", p.log)
	stderr, err := x.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := x.command.Start(); err != nil {
		t.Fatal(err)
	}
	go x.listen(stderr)
	return x
}

func (x *proxy) listen(stderr io.Reader) {
	var all strings.Builder
	serving := false
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		if !serving && strings.Contains(lines.Text(), `"msg":"serving"`) {
			serving = true
			close(x.serving)
		}
	}
	x.said <- all.String()
}

// await waits until the pipes are open.
func (x *proxy) await(t *testing.T) {
	t.Helper()
	select {
	case <-x.serving:
	case said := <-x.said:
		t.Fatalf("the proxy did not start:\n%s", said)
	case <-time.After(patience):
		t.Fatal("the proxy does not start")
	}
}

// kill ends the process as nobody can prevent, and waits until it is gone.
func (x *proxy) kill() {
	_ = x.command.Process.Kill()
	<-x.said
	_ = x.command.Wait() // "killed", and that is the point
}

// end stops the process in order.
func (x *proxy) end(t *testing.T) {
	t.Helper()
	if err := x.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	said := <-x.said
	if err := x.command.Wait(); err != nil {
		t.Fatalf("the proxy did not stop in order: %v\n%s", err, said)
	}
}
