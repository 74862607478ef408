package main

import (
	"context"
	"net"
	"sync"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// pipes are those of the node, in memory: each connection knows whose it is, as the kernel does of a real one.
type pipes struct {
	mu  sync.Mutex // guards all
	all map[string]*pipe
}

// pipe takes connections under one name.
type pipe struct {
	name   string
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// visit is the node's end of a connection.
type visit struct {
	net.Conn
	who caller.Caller
}

func newPipes() *pipes { return &pipes{all: map[string]*pipe{}} }

func (p *pipes) get(name string) *pipe {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[name] == nil {
		p.all[name] = &pipe{name: name, conns: make(chan net.Conn), closed: make(chan struct{})}
	}
	return p.all[name]
}

// Listen opens a pipe.
func (p *pipes) Listen(name string) (net.Listener, error) { return p.get(name), nil }

// Dial opens a connection of somebody.
func (p *pipes) Dial(ctx context.Context, name string, who caller.Caller) (net.Conn, error) {
	to := p.get(name)
	ours, theirs := net.Pipe()
	select {
	case to.conns <- visit{theirs, who}:
		return ours, nil
	case <-to.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *pipe) Addr() net.Addr { return address(p.name) }

type address string

func (address) Network() string  { return "memory" }
func (a address) String() string { return string(a) }
