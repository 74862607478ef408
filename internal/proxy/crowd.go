package proxy

import (
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// crowd counts the connections that leave no record of their own: those that were turned away at the accept, and those of strangers
// that come too often. One record has the number of them, so that a flood is not accepted more slowly than it comes, nor fills the log.
type crowd struct {
	pipe    *pipe
	writing sync.Mutex // held while a record is written, so that the last flush waits for the one before

	mu      sync.Mutex // guards what follows
	n       int
	first   time.Time
	clients []uint32 // some of their processes, as noted at the accept
	timer   *time.Timer
}

// add counts a connection that is over.
func (w *crowd) add(at peer.Arrival) {
	w.pipe.metrics.crowd(w.pipe.name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n++; w.n == 1 {
		w.first = at.Time
		w.timer = time.AfterFunc(crowdInterval, w.flush)
	}
	if len(w.clients) < maxClients && !slices.Contains(w.clients, at.PID) {
		w.clients = append(w.clients, at.PID)
	}
}

// flush writes the record of what was counted since the last one.
func (w *crowd) flush() {
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.Lock()
	n, first, clients := w.n, w.first, w.clients
	w.n, w.clients = 0, nil
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	if n > 0 {
		w.pipe.metrics.accept(w.pipe.name) // the group, as one
		w.pipe.final(w.pipe.crowdRecord(n, first, clients))
		w.pipe.metrics.over(w.pipe.name, kindConnection)
	}
}

// turnAway ends a connection right at its accept.
func (p *pipe) turnAway(raw net.Conn, at peer.Arrival) {
	_ = raw.Close() // nothing was said on it
	p.crowd.add(at)
}

// crowdRecord is the record of n connections that have none of their own.
func (p *pipe) crowdRecord(n int, first time.Time, clients []uint32) audit.Event {
	e := p.record(&conn{pipe: p}, audit.TypeConnection, audit.StageConnectionClosed, rand.Text())
	names := make([]string, len(clients))
	for i, pid := range clients {
		names[i] = fmt.Sprint(pid)
	}
	e.Outcome = &audit.Outcome{
		Result: audit.ResultRejected, Code: codes.ResourceExhausted.String(), LatencyUS: time.Since(first).Microseconds(),
		Error: fmt.Sprintf("%d connections of clients that no rule names or that were not named yet, and that connect more often than they may; among their processes: %s",
			n, strings.Join(names, ", ")),
	}
	return e
}
