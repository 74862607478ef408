//go:build !windows

package cluster

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
)

// Balancer is a fixed address in front of programs that come and go, as a Service is. It forwards connections and
// looks into none, so that TLS is between the two ends.
type Balancer struct {
	listener net.Listener
	wait     sync.WaitGroup

	mu       sync.Mutex // guards what follows
	backends []string
	next     int
	open     map[net.Conn]string // connections of clients with their backend
	held     chan struct{}       // not nil while bytes are held back; closed to let them go on
	closed   bool
}

// StartBalancer listens on a free port of the loopback interface.
func StartBalancer(backends ...string) (*Balancer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // binding does not wait
	if err != nil {
		return nil, fmt.Errorf("start a balancer: %w", err)
	}
	b := &Balancer{listener: l, backends: backends, open: map[net.Conn]string{}}
	b.wait.Go(b.accept)
	return b, nil
}

// Address is where the balancer listens.
func (b *Balancer) Address() string { return b.listener.Addr().String() }

// Port is the port where it listens.
func (b *Balancer) Port() int32 { return portOf(b.Address()) }

// SetBackends replaces the addresses that new connections go to. Open connections stay.
func (b *Balancer) SetBackends(backends ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = slices.Clone(backends)
}

// HangUp closes the open connections, so that clients come again.
func (b *Balancer) HangUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for conn := range b.open {
		_ = conn.Close()
	}
}

// Hold keeps back what either side sends, on open connections and on new ones, until Release: a network that has
// stopped delivering.
func (b *Balancer) Hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == nil {
		b.held = make(chan struct{})
	}
}

// Release delivers again.
func (b *Balancer) Release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held != nil {
		close(b.held)
		b.held = nil
	}
}

// Close ends the balancer and every connection.
func (b *Balancer) Close() error {
	err := b.listener.Close()
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.Release()
	b.HangUp()
	b.wait.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (b *Balancer) accept() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return // closed
		}
		b.wait.Go(func() { b.serve(conn) })
	}
}

// serve forwards one connection.
func (b *Balancer) serve(client net.Conn) {
	defer client.Close()
	server, ok := b.connect(client)
	if !ok {
		return
	}
	defer server.Close()
	defer func() {
		b.mu.Lock()
		delete(b.open, client)
		b.mu.Unlock()
	}()
	var both sync.WaitGroup
	both.Go(func() { b.copy(server, client) })
	both.Go(func() { b.copy(client, server) })
	both.Wait()
}

// connect tries each backend once, as a Service skips those that are not ready.
func (b *Balancer) connect(client net.Conn) (net.Conn, bool) {
	b.mu.Lock()
	backends, first := b.backends, b.next
	b.next++
	b.mu.Unlock()
	for i := range backends {
		backend := backends[(first+i)%len(backends)]
		server, err := net.Dial("tcp", backend) //nolint:noctx // loopback answers at once
		if err != nil {
			continue
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.closed {
			_ = server.Close()
			return nil, false
		}
		b.open[client] = backend
		return server, true
	}
	return nil, false
}

// copy forwards one direction and passes on its end.
func (b *Balancer) copy(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		b.mu.Lock()
		held := b.held
		b.mu.Unlock()
		if held != nil {
			<-held
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				_ = from.Close()
				return
			}
		}
		if errors.Is(err, io.EOF) {
			if half, ok := to.(*net.TCPConn); ok {
				_ = half.CloseWrite()
			}
			return
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}
