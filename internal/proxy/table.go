package proxy

import (
	"errors"
	"fmt"
	"sync"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// table counts the connections of one pipe. When there are too many, the oldest on which nothing has arrived gives way,
// since stock clients leave one such behind and do not miss it; only if there is none is the new one refused.
type table struct {
	limits Limits

	mu       sync.Mutex // guards what follows
	serial   uint64
	conns    map[*conn]callerKey
	stopping bool
}

// callerKey is who connections and operations count for: a container whose processes are one caller, however many it starts,
// or else a process, for as long as any of its connections holds it.
type callerKey = acl.Principal

// errStopping means that a connection came too late. It is no fault of the caller's.
var errStopping = errors.New("the proxy stopped")

// resultOf is how the record of a connection that was not taken says so.
func resultOf(err error) string {
	if errors.Is(err, errStopping) {
		return audit.ResultIdle
	}
	return audit.ResultRejected
}

// next returns the number of the next connection in the order of acceptance.
func (t *table) next() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.serial++
	return t.serial
}

// add takes in a connection whose caller is not known yet. The victim, if there is one, is out of the table and must be ended.
func (t *table) add(c *conn) (victim *conn, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopping {
		return nil, errStopping
	}
	if len(t.conns) >= t.limits.Connections {
		if victim = t.oldestBare(c, nil); victim == nil {
			return nil, fmt.Errorf("the pipe has %d connections, the most it may have", len(t.conns))
		}
		delete(t.conns, victim)
	}
	t.conns[c] = callerKey{}
	return victim, nil
}

// identify counts a connection to its caller.
func (t *table) identify(c *conn, who peer.Identity) (victim *conn, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.conns[c]; !ok || t.stopping {
		return nil, errStopping
	}
	key := asPrincipal(who)
	held := 0
	for _, k := range t.conns {
		if k == key {
			held++
		}
	}
	if held >= t.limits.ConnectionsPerCaller {
		if victim = t.oldestBare(c, &key); victim == nil {
			return nil, fmt.Errorf("the caller holds %d connections to this pipe, the most it may hold", held)
		}
		delete(t.conns, victim)
	}
	t.conns[c] = key
	return victim, nil
}

// oldestBare looks among all connections but c, or among those of one caller. t.mu must be held.
func (t *table) oldestBare(c *conn, key *callerKey) *conn {
	var oldest *conn
	for other, k := range t.conns {
		if other == c || !other.bare.Load() || key != nil && k != *key {
			continue
		}
		if oldest == nil || other.serial < oldest.serial {
			oldest = other
		}
	}
	return oldest
}

func (t *table) remove(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, c)
}

// stop refuses further connections and returns those that are there.
func (t *table) stop() []*conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopping = true
	var rest []*conn
	for c := range t.conns {
		rest = append(rest, c)
	}
	return rest
}
