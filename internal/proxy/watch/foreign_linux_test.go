package watch

import (
	"net"
	"os"
	"testing"

	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
)

func TestARealServerIsNamed(t *testing.T) {
	dir, err := os.MkdirTemp("", "watch")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	options := pipe.Options{SocketDir: dir}
	for _, name := range []string{"csi-proxy-disk-v1", "csi-proxy-volume-v1", "other"} {
		listener, err := pipe.Listen(name, options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
	}
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: pipe.Address("csi-proxy-left-behind", options), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	found, err := Search{Pipes: options, Own: func(name string) bool { return name == "csi-proxy-volume-v1" }}.Foreign(t.Context())
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if f := found[0]; f.Pipe != "csi-proxy-disk-v1" || int(f.PID) != os.Getpid() || f.Program != self || f.Doubt != "" {
		t.Errorf("%+v, not %s", f, self)
	}
	if _, err := (Search{Pipes: pipe.Options{SocketDir: dir + "x"}}).Foreign(t.Context()); err == nil {
		t.Error("no directory, and nothing is said")
	}
}
