package intake

import (
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// connections are open at one time; of one address, half of them. An API server needs some 200, a node that waits for a
	// bundle needs one, and many may share an address behind a gateway.
	connections, connectionsPerAddress = 2048, 1024
)

// Listener bounds the connections that are open, before anything is read of them. Its State belongs into the http.Server's
// ConnState.
type Listener struct {
	net.Listener
	total, perAddress int
	closed            atomic.Uint64 // for want of room

	mu     sync.Mutex     // guards the rest
	open   []*connection  // those that wait are in the order in which they began to
	counts map[string]int // of open, by address
	unused map[string]int // of those on which nothing was answered and that wait, by address
}

// connection is one that a Listener accepted.
type connection struct {
	net.Conn
	of      *Listener
	address string
	waits   bool // for a handshake, or for a request
	used    bool // a request was answered on it
	since   time.Time
}

// Bound returns a Listener that accepts from l.
func Bound(l net.Listener) *Listener { return bound(l, connections, connectionsPerAddress) }

func bound(l net.Listener, total, perAddress int) *Listener {
	return &Listener{Listener: l, total: total, perAddress: perAddress, counts: map[string]int{}, unused: map[string]int{}}
}

// Accept implements net.Listener. A connection for which there is no room is closed at once.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &connection{Conn: accepted, of: l, address: Host(accepted.RemoteAddr().String()), waits: true, since: time.Now()}
		old, ok := l.enter(c)
		if !ok {
			old = accepted
		}
		if old != nil {
			l.closed.Add(1)
			_ = old.Close() // the outcome does not matter
		}
		if ok {
			return c, nil
		}
	}
}

// enter takes a connection in, if there is room for it. Another makes room, and is to be closed: see victim. Its youth protects it only from
// addresses that would then have as many: else those that reconnect fast enough would all be young, and keep all others out.
func (l *Listener) enter(c *connection) (old net.Conn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	isAddressFull := l.counts[c.address] >= l.perAddress
	if !isAddressFull && len(l.open) < l.total {
		l.add(c)
		return nil, true
	}
	i := l.victim(func(o *connection) bool { return o.waits && (!isAddressFull || o.address == c.address) })
	if i < 0 {
		return nil, false
	}
	has := l.counts
	if !l.open[i].used {
		has = l.unused
	}
	hasFewer := has[c.address]+1 < has[l.open[i].address]
	if !hasFewer && time.Since(l.open[i].since) < youth {
		return nil, false
	}
	old = l.open[i].Conn
	l.remove(i)
	l.add(c)
	return old, true
}

// victim is the connection that makes room, of those that may; -1 if there is none. Connections on which nothing was answered come first: of the address
// that has most of these, the one that waits longest. An API server keeps a number of connections and asks on them again and again, so that of
// the others the one makes room that was used longest ago, whatever its address has.
func (l *Listener) victim(may func(*connection) bool) int {
	found, most := -1, 0
	for i, o := range l.open {
		if n := l.unused[o.address]; !o.used && n > most && may(o) {
			found, most = i, n
		}
	}
	if found < 0 {
		found = slices.IndexFunc(l.open, may)
	}
	return found
}

// add, remove and count keep the books. The caller holds l.mu.
func (l *Listener) add(c *connection) {
	l.open = append(l.open, c)
	count(l.counts, c.address, 1)
	l.count(c, 1)
}

func (l *Listener) remove(i int) {
	c := l.open[i]
	l.open = slices.Delete(l.open, i, i+1)
	count(l.counts, c.address, -1)
	l.count(c, -1)
}

func (l *Listener) count(c *connection, by int) {
	if c.waits && !c.used {
		count(l.unused, c.address, by)
	}
}

func count[K comparable](m map[K]int, key K, by int) {
	if m[key] += by; m[key] == 0 {
		delete(m, key)
	}
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	if i := slices.Index(c.of.open, c); i >= 0 { // else it made room for another
		c.of.remove(i)
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// State takes note of whether a request is being answered on a connection: such a one never makes room.
func (l *Listener) State(on net.Conn, state http.ConnState) {
	if wrapped, ok := on.(interface{ NetConn() net.Conn }); ok { // of TLS
		on = wrapped.NetConn()
	}
	c, ok := on.(*connection)
	if !ok || c.of != l {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	waits := state == http.StateIdle
	i := slices.Index(l.open, c)
	if i < 0 || state == http.StateNew || c.waits && waits {
		return
	}
	l.count(c, -1)
	c.waits, c.used, c.since = waits, c.used || waits, time.Now()
	l.count(c, 1)
	l.open = append(slices.Delete(l.open, i, i+1), c)
}

// Open is how many connections are open now.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// Closed is how many connections were closed for want of room.
func (l *Listener) Closed() uint64 { return l.closed.Load() }
