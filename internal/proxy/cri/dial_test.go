//go:build linux || windows

package cri

import (
	"errors"
	"net"
	"runtime"
	"testing"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

func connect(t *testing.T, e Endpoint) (peer.List, error) {
	t.Helper()
	dial, err := Dialer(e)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c.Refresh(t.Context())
}

// nobody resolves no server.
type nobody struct{}

func (nobody) Resolve(net.Conn, peer.Arrival) (peer.Peer, error) {
	return nil, errors.New("cannot be told")
}

func TestRuntimeOfAnAccountThatIsTrustedIsAsked(t *testing.T) {
	list, err := connect(t, Endpoint{Address: listen(t, onePod()), Users: []string{self(t)}})
	if err != nil || names(list) != "csi-a" {
		t.Errorf("got %v, %v", list, err)
	}
}

func TestRuntimeOfAnotherAccountIsNotAsked(t *testing.T) {
	for name, e := range map[string]Endpoint{
		"another account":                {Users: []string{"uid:4294967294", "S-1-5-7"}},
		"no account":                     {Users: []string{}},
		"an account that cannot be told": {Servers: nobody{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := onePod()
			e.Address = listen(t, f)
			if list, err := connect(t, e); err == nil || len(list.Candidates) != 0 {
				t.Errorf("got %v", list)
			}
			if f.asked() != 0 {
				t.Error("it was asked")
			}
		})
	}
}

func TestDialerRefusesOtherAddresses(t *testing.T) {
	for _, address := range []string{
		"", "/run/containerd.sock", "unix://", "unix://run/x", "unix:/run/x", "tcp://127.0.0.1:1", "127.0.0.1:1", "dns:///x", `\\server\pipe\containerd`,
		`\\.\pipe\`, `\\.\pipe\a\b`, `npipe:////./pipe/`, "npipe:////server/pipe/x", "npipe:////./pipe/../x",
	} {
		if _, err := Dialer(Endpoint{Address: address}); err == nil {
			t.Errorf("%q is an endpoint", address)
		}
	}
	_, err := Dialer(Endpoint{Address: `\\.\pipe\containerd-containerd`})
	if runtime.GOOS == "windows" && err != nil || runtime.GOOS != "windows" && err == nil {
		t.Errorf("a pipe on %s: %v", runtime.GOOS, err)
	}
}
