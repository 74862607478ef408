package windows

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
)

// configured writes a configuration of the usual rules and more.
func configured(t *testing.T, more string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pipes.yaml")
	text := fmt.Sprintf(rules, strconv.Quote(self), strconv.Quote(environment(t, "PIPEGUARD_CLI"))) + more
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// descriptor is the one that an open pipe has.
func descriptor(ctx context.Context, t *testing.T, path string) string {
	t.Helper()
	conn, err := winio.DialPipeContext(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	file, ok := conn.(interface{ Fd() uintptr })
	if !ok {
		t.Fatalf("a %T has no handle", conn)
	}
	sd, err := windows.GetSecurityInfo(windows.Handle(file.Fd()), windows.SE_KERNEL_OBJECT,
		windows.OWNER_SECURITY_INFORMATION|windows.GROUP_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		t.Fatal(err)
	}
	return sd.String()
}

func TestEachPipeHasTheDescriptorThatTheConfigurationAsksFor(t *testing.T) {
	const service = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"
	p := start(t, "--config", configured(t, "pipes:\n- {pipe: filesystem-v1, containerUser: true}\n- {pipe: filesystem-v2alpha1, containerUser: true, allow: ["+service+"]}\n"))
	ctx := bounded(t)
	for version, accounts := range map[string][]string{
		"v1": {pipe.ContainerUser}, "v2alpha1": {pipe.ContainerUser, service}, "v1beta1": nil, "v1alpha1": nil,
	} {
		sddl, err := pipe.Descriptor("", accounts)
		if err != nil {
			t.Fatal(err)
		}
		want, err := windows.SecurityDescriptorFromString(sddl)
		if err != nil {
			t.Fatal(err)
		}
		if got := descriptor(ctx, t, pipePath(version)); got != want.String() {
			t.Errorf("%s has    %s\nshould have %s", version, got, want)
		}
	}
	good(ctx, t, p)
	for _, event := range p.events() { // the proxy asks each pipe who serves it, and is no caller for that
		if event.Who != nil && event.Who.Process != nil && strings.EqualFold(filepath.Base(event.Who.Process.Exe), "proxy.exe") {
			t.Errorf("the proxy's own question is recorded: %+v", event)
		}
	}
}

func TestAPipeSectionThatIsWrongStopsTheStart(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"Everyone":            {"pipes: [{pipe: filesystem-v1, allow: [S-1-1-0]}]", "is Everyone"},
		"Authenticated Users": {"pipes: [{pipe: filesystem-v1, allow: [S-1-5-11]}]", "is Authenticated Users"},
		"no such pipe":        {"pipes: [{pipe: filesystem-v9, containerUser: true}]", "covers no pipe"},
		"a descriptor":        {"pipes: [{pipe: filesystem-v1, sddl: 'D:P(A;;FA;;;WD)'}]", "unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			p := prepare(t)
			output, code := run(t, environment(t, "PIPEGUARD_PROXY"), append(p.arguments(), "--config", configured(t, c.text+"\n"))...)
			p.notStarted(output, code, 1, c.want)
		})
	}
	t.Run("a descriptor that lets every account in", func(t *testing.T) {
		p := prepare(t)
		output, code := run(t, environment(t, "PIPEGUARD_PROXY"), append(p.arguments(), "--pipe-sddl", "O:SYG:SY")...)
		p.notStarted(output, code, 2, "so that every account could")
	})
}

// notStarted checks that the proxy did not start, and that it said why.
func (p *proxy) notStarted(output string, got, code int, want string) {
	p.t.Helper()
	if got != code {
		p.t.Errorf("the proxy ended with exit code %d, want %d", got, code)
	}
	log, err := os.ReadFile(p.log)
	if !strings.Contains(string(log)+output, want) {
		p.t.Errorf("%q is not in (%v)\n%s%s", want, err, log, output)
	}
}

// serveAs has this process, which is not the proxy, serve a pipe until the test ends.
func serveAs(t *testing.T, name string) {
	t.Helper()
	listener, err := winio.ListenPipe(`\\.\pipe\`+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn); _ = conn.Close() }(conn)
		}
	}()
	// Wine lets the first client in where nobody ever answers.
	if conn, err := winio.DialPipe(`\\.\pipe\`+name, nil); err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
}

func TestAPipeWhoseNameIsTakenStopsTheProxy(t *testing.T) {
	serveAs(t, "csi-proxy-filesystem-v1")
	p := prepare(t)
	output, code := run(t, environment(t, "PIPEGUARD_PROXY"), p.arguments()...)
	p.notStarted(output, code, 1, "the name is taken")
	p.notStarted(output, code, 1, fmt.Sprintf("process %d", os.Getpid()))
}

func TestPipesOfAnotherServerAreFound(t *testing.T) {
	serveAs(t, "csi-proxy-volume-v1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// This proxy serves filesystem alone: an old csi-proxy.exe goes on to serve the rest past it.
	p := start(t, "--config", configured(t, "backend: upstream\nupstream: {pipe: upstream-csi-*, groups: [filesystem]}\n"))
	found := ""
	for deadline := time.Now().Add(callTimeout); found == "" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		log, err := os.ReadFile(p.log)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, `"event":122`) {
				found += line
			}
		}
	}
	for _, want := range []string{`"pipe":"csi-proxy-volume-v1"`, fmt.Sprintf(`"pid":%d`, os.Getpid()), filepath.Base(self)} {
		if !strings.Contains(found, want) {
			t.Errorf("%s is not in %q", want, found)
		}
	}
	if strings.Contains(found, "filesystem") {
		t.Errorf("its own pipes are reported: %s", found)
	}
	output, code := run(t, environment(t, "PIPEGUARD_PROXY"), "status")
	if code != 4 || !strings.Contains(output, fmt.Sprintf(`NOT GUARDED "csi-proxy-volume-v1": process %d, `, os.Getpid())) {
		t.Errorf("status: exit code %d\n%s", code, output)
	}
}
