//go:build unix

package pipe

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

func TestAnAcceptedConnectionCarriesItsArrival(t *testing.T) {
	o := Options{SocketDir: filepath.Join(t.TempDir(), "s")}
	listener, err := Listen("test", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	client, err := Dial(context.Background(), "test", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	before := time.Now()
	accepted, err := listener.Accept()
	after := time.Now()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = accepted.Close() })
	conn, at := peer.Arrived(accepted)
	if at.Time.Before(before) || at.Time.After(after) || at.PID != uint32(os.Getpid()) {
		t.Errorf("accepted between %v and %v by process %d: %+v", before, after, os.Getpid(), at)
	}
	held, err := peer.NewResolver().Resolve(conn, at)
	if err != nil {
		t.Fatalf("the connection that the system knows is %T: %v", conn, err)
	}
	_ = held.Close()
}
