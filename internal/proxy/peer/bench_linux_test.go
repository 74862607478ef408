package peer

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// inOne is the real kernel, but that the caller is in one container: this process cannot be put into one here. All
// others are asked for as always.
type inOne struct {
	linuxKernel
	container string
}

func (k inOne) Open(conn net.Conn, pid uint32) (process, error) {
	p, err := k.linuxKernel.Open(conn, pid)
	return inOneProcess{p, k.container}, err
}

type inOneProcess struct {
	process
	container string
}

func (p inOneProcess) InJob(name string) (bool, error) {
	in, err := p.process.InJob(name)
	return in || name == p.container, err
}

// accepted is a connection of this process to itself.
func accepted(b *testing.B) net.Conn {
	b.Helper()
	listener, err := net.Listen("unix", filepath.Join(b.TempDir(), "s"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = listener.Close() })
	client, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	conn, err := listener.Accept()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}

func node(containers int) []Candidate {
	list := make([]Candidate, containers)
	for i := range list {
		list[i] = of("a")
		list[i].Container.ID = fmt.Sprintf("%064x", i)
	}
	return list
}

// BenchmarkResolveNewCaller is what a connection costs before its first byte is read; "process" is without containers.
func BenchmarkResolveNewCaller(b *testing.B) {
	resolve := func(b *testing.B, r Resolver, want caller.Assurance) {
		conn := accepted(b)
		b.ReportAllocs()
		for b.Loop() {
			p, err := r.Resolve(conn, Note(conn))
			if err != nil {
				b.Fatal(err)
			}
			if got := p.Identity().Assurance; got != want {
				b.Fatalf("assurance %s", got)
			}
			if err := p.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("process", func(b *testing.B) { resolve(b, NewResolver(), caller.AssuranceProcess) })
	for _, n := range []int{1, 20, 220} {
		b.Run(fmt.Sprintf("containers=%d", n), func(b *testing.B) {
			list := node(n)
			p := &placer{containers: &fakeContainers{known: list}, accounts: &fakeAccounts{account: "csi"}, timeout: defaultTimeout}
			resolve(b, resolver{kernel: inOne{container: list[n/2].Container.ID}, placer: p}, caller.AssurancePod)
		})
	}
}

// BenchmarkResolvedCaller is what the identity costs each request of a connection: that it is known, and still alive.
func BenchmarkResolvedCaller(b *testing.B) {
	list := node(220)
	p := &placer{containers: &fakeContainers{known: list}, timeout: defaultTimeout}
	held, err := resolver{kernel: inOne{container: list[7].Container.ID}, placer: p}.Resolve(accepted(b), Arrival{Time: accept})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = held.Close() })
	b.Run("identity", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if held.Identity().Assurance != caller.AssurancePod {
				b.Fatal("no pod")
			}
		}
	})
	b.Run("alive", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := held.Alive(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
