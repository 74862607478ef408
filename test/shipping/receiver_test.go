//go:build unix

package shipping

import (
	"bufio"
	"net"
	"sync"
	"testing"
	"time"
)

// receiver is where records go: every line that came over TCP, in the order in which lines ended.
type receiver struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu      sync.Mutex // guards what follows
	lines   []string
	conns   map[net.Conn]bool
	arrived *sync.Cond
}

func receive(t *testing.T) *receiver {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{listener: l, conns: map[net.Conn]bool{}}
	r.arrived = sync.NewCond(&r.mu)
	r.serving.Go(r.accept)
	t.Cleanup(func() {
		_ = l.Close()
		r.mu.Lock()
		for c := range r.conns {
			_ = c.Close()
		}
		r.mu.Unlock()
		r.serving.Wait()
	})
	return r
}

// all is every line that came, once every sender has ended.
func (r *receiver) all() []string {
	_ = r.listener.Close()
	r.serving.Wait()
	return r.lines
}

func (r *receiver) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		r.conns[c] = true
		r.mu.Unlock()
		r.serving.Go(func() { r.read(c) })
	}
}

func (r *receiver) read(c net.Conn) {
	in := bufio.NewReaderSize(c, 1<<16)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			break
		}
		r.mu.Lock()
		r.lines = append(r.lines, line)
		r.mu.Unlock()
		r.arrived.Broadcast()
	}
	r.mu.Lock()
	delete(r.conns, c)
	r.mu.Unlock()
	_ = c.Close()
}

// count is how many lines have come.
func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lines)
}

// wait waits until so many lines have come, or nobody has the patience any more.
func (r *receiver) wait(n int) {
	late := time.Now().Add(patience)
	timer := time.AfterFunc(patience, r.arrived.Broadcast)
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.lines) < n && time.Now().Before(late) {
		r.arrived.Wait()
	}
}
