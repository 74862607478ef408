package proxy

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
)

// conn is an accepted connection. It holds the caller's process from the handshake to the end, and leaves exactly
// one connection record.
type conn struct {
	net.Conn
	pipe     *pipe
	id       string
	corr     *audit.Corr // of all its records
	at       peer.Arrival
	serial   uint64                                 // order of acceptance
	busy     atomic.Int32                           // requests in progress
	asked    atomic.Bool                            // a request has begun on it
	done     chan struct{}                          // closed when the record is written and the place is free
	caller   [2]atomic.Pointer[requestpolicy.Shown] // as policies are shown it, without and with a token
	standing atomic.Pointer[standing]               // of the caller, as it was found out last
	once     sync.Once
	acted    atomic.Bool // a call on it was admitted
	expelled atomic.Bool // it is being ended, since its caller was refused too often
	renewing atomic.Bool // it is being ended, so that its caller is named anew
	life     *lifetime   // of the contexts of its requests; set before the first of them

	writes chan struct{} // holds something while a Write waits for the client

	mu          sync.Mutex // guards the fields below; taken under the transport's locks, so nothing blocks under it
	peer        peer.Peer
	key         *caller.Principal // of the peer; nil until it was asked for
	idle        *time.Timer       // ends the connection of a stranger on which nothing happens; else nil
	release     func()            // lets go of the caller's count of connections; may be nil
	named       *audit.Who        // how records name the peer; nil until it was asked for
	scan        scanner
	frames      acl.Bucket // of frameRate
	established bool       // HTTP/2 has begun
	readErr     error
	result      string // set when this side ends the connection for a reason of its own
	reason      string
	tapped      int // requests that gRPC has announced
	refused     int // requests that gRPC has refused unannounced, as far as they are recorded
	streams     map[*stream]struct{}
	untaken     map[*stream]*time.Timer // requests that are over but for the client taking their answers, with what ends the connection otherwise
	pending     []unwritten             // written by the next Read or at the end
	ended       bool
}

// unwritten is a record that is to be written, and the function to call afterwards.
type unwritten struct {
	record lastRecord
	over   func()
}

func newConn(raw net.Conn, p *pipe, at peer.Arrival) *conn {
	id := rand.Text()
	return &conn{Conn: raw, pipe: p, id: id, corr: &audit.Corr{Conn: id}, at: at, done: make(chan struct{}), writes: make(chan struct{}, 1), streams: map[*stream]struct{}{}, untaken: map[*stream]*time.Timer{}}
}

// Read first writes the records of what the transport has dealt with since the last Read. The transport reads
// from one goroutine and comes back only when it has used up what it was given, so a caller who sends
// what must be refused is read no faster than the log takes it.
//
// Nor does it read on while an answer waits for the client: one that sends and never reads would have its answers pile up here.
func (c *conn) Read(b []byte) (int, error) {
	c.writePending(false)
	c.writes <- struct{}{}
	<-c.writes
	if c.isStranger() {
		b = b[:min(len(b), strangerReads)]
	}
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 && !c.feed(b[:n]) {
		return 0, errFrames
	}
	if err != nil && c.readErr == nil && !isOwnClose(err) {
		c.readErr = err
	}
	return n, err
}

// Write ends the connection of a client that does not take answers.
func (c *conn) Write(b []byte) (int, error) {
	c.writes <- struct{}{}
	defer func() { <-c.writes }()
	most := c.patience()
	if err := c.SetWriteDeadline(time.Now().Add(most)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		c.endUnread(most)
	}
	return n, err
}

// patience is how long an answer may wait for the client.
func (c *conn) patience() time.Duration {
	if c.isStranger() {
		return strangerTakes
	}
	return takenWithin
}

func (c *conn) endUnread(waited time.Duration) {
	c.giveUp(audit.ResultRejected, fmt.Sprintf("the client did not read answers for %v", waited))
}

// answered gives back the share of a request that is over. As long as gRPC holds messages of its answer, since the windows that the client
// grants have no room for them, the request counts as in progress, and not for long.
func (c *conn) answered(s *stream) {
	most := c.patience()
	c.mu.Lock()
	s.isOver = true
	waits := s.owed > 0 && !c.ended
	if waits {
		c.untaken[s] = time.AfterFunc(most, func() { c.endUnread(most) })
	}
	c.mu.Unlock()
	if !waits && s.release != nil {
		s.release()
	}
}

// taken says that gRPC has let go of a message of a request's answer.
func (c *conn) taken(s *stream) {
	c.mu.Lock()
	s.owed--
	late, waits := c.untaken[s]
	waits = waits && s.owed == 0
	if waits {
		late.Stop()
		delete(c.untaken, s)
	}
	c.mu.Unlock()
	if waits && s.release != nil {
		s.release()
	}
}

// whenTaken returns a release that waits until the client has taken the answer that was given just before: gRPC keeps it, and all that it
// knows of its request, until then.
func (c *conn) whenTaken(release func()) func() {
	return func() {
		time.AfterFunc(answerTime, func() {
			c.writes <- struct{}{}
			<-c.writes
			release()
		})
	}
}

// feed scans what has arrived, and says whether the connection may go on. c.mu must be held.
func (c *conn) feed(b []byte) bool {
	count := func() int {
		if c.pipe.isForwarded() {
			return c.scan.small
		}
		return c.scan.frames
	}
	before := count()
	if c.scan.feed(b); c.scan.begun > 0 {
		c.asked.Store(true)
	}
	left := c.frames.Left(frameRate, time.Now())
	n := float64(count() - before)
	if c.frames.Take(n); n <= left {
		return true
	}
	if c.result == "" {
		c.result, c.reason = audit.ResultRejected, errFrames.Error()
	}
	return false
}

// isOwnClose says that this side has closed the connection, and not the caller. Pipes of Windows have an error of their own for
// it.
func isOwnClose(err error) bool { return errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed) }

// writePending writes the records that wait, and one for the requests that gRPC has refused unannounced. At the end of the
// connection those count too that did not arrive in full: gRPC may have closed it because of them.
func (c *conn) writePending(atEnd bool) {
	c.mu.Lock()
	pending := c.pending
	c.pending = nil
	arrived := c.scan.blocks
	if atEnd {
		arrived = max(arrived, c.scan.begun)
	}
	n := max(0, arrived-c.tapped-c.refused)
	c.refused += n
	c.mu.Unlock()
	for _, e := range pending {
		c.pipe.final(e.record)
		e.over()
	}
	if n > 0 {
		c.pipe.refuseUnnamed(c, n)
	}
}

// open registers a stream that gRPC has announced. It returns false if the connection has ended.
func (c *conn) open(s *stream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.tapped++
	c.busy.Add(1)
	if c.idle != nil {
		c.idle.Reset(strangerIdle)
	}
	c.streams[s] = struct{}{}
	return true
}

func (c *conn) forget(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s)
}

// later has a record written as soon as the transport's locks are free.
func (c *conn) later(e lastRecord, over func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, unwritten{e, over})
}

// isStranger says whether the caller is a stranger to the pipe by the rules that hold now. What they say of it is found out once
// for each connection and set of rules.
func (c *conn) isStranger() bool {
	rules := c.pipe.now()
	if s := c.standing.Load(); s != nil && s.rules == rules {
		return s.stranger
	}
	s := &standing{rules, c.pipe.isStranger(rules, c.identity())}
	c.standing.Store(s)
	return s.stranger
}

// standing is what rules say of a caller.
type standing struct {
	rules    *Rules
	stranger bool
}

// because sets how the record will say that the connection ended. The first reason stays.
func (c *conn) because(result, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.result == "" {
		c.result, c.reason = result, reason
	}
}

// Close ends the connection. The record is written by a goroutine, because the transport may call this under its locks;
// the server waits for it.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.pipe.background.Go(c.finish) })
	return err
}

// giveUp closes the connection for a reason. An error of Close changes nothing.
func (c *conn) giveUp(result, reason string) {
	c.because(result, reason)
	_ = c.Close()
}

// end closes the connection for a reason and waits for its record.
func (c *conn) end(result, reason string) {
	c.giveUp(result, reason)
	<-c.done
}

// endIdle has a stranger's connection end once nothing has happened on it for a while. Connections of callers that rules name may idle
// for ever.
func (c *conn) endIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.idle = time.AfterFunc(strangerIdle, func() {
		switch {
		case !c.isStranger(): // not any more
		case c.busy.Load() > 0:
			c.endIdle()
		default:
			c.giveUp(audit.ResultIdle, fmt.Sprintf("no rule names the caller, and it asked for nothing within %v", strangerIdle))
		}
	})
}

// renew ends the connection of a caller about whom something could not be found out, after the answer to a call that was denied: the caller of the next
// one is named anew. Clients keep connections for ever, and what named it may have been away for a second. A request in progress keeps it.
func (c *conn) renew() {
	if !c.renewing.CompareAndSwap(false, true) {
		return
	}
	time.AfterFunc(lingering, func() {
		if c.busy.Load() > 0 {
			c.renewing.Store(false)
			return
		}
		c.giveUp(audit.ResultIdle, "not all about the caller could be found out, which is tried again for its next connection")
	})
}

// finish writes what is still to be written, and lets go of the caller's process.
func (c *conn) finish() {
	defer close(c.done)
	c.mu.Lock()
	c.ended = true
	open := slices.Collect(maps.Keys(c.streams))
	held, release, untaken := c.peer, c.release, c.untaken
	c.untaken = nil
	if c.idle != nil {
		c.idle.Stop()
	}
	c.mu.Unlock()
	if release != nil {
		release()
	}
	for s, late := range untaken {
		late.Stop()
		if s.release != nil {
			s.release()
		}
	}
	c.writePending(true)
	for _, s := range open {
		// It was not served yet. If its goroutine comes to it now, the claim tells it that it is too late.
		if s.claim() {
			c.pipe.final(c.pipe.rejection(s, errEnded))
			s.over()
		}
	}
	isSingle := c.pipe.final(c.pipe.connectionRecord(c))
	c.pipe.metrics.over(c.pipe.name, kindConnection)
	c.pipe.conns.remove(c)
	if held != nil {
		if err := held.Close(); err != nil && isSingle {
			c.pipe.logPeerClose(c, err)
		}
	}
}

// outcome says how the connection ended, for its record.
func (c *conn) outcome() (result, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	silent := errors.Is(c.readErr, os.ErrDeadlineExceeded)
	switch {
	case c.result != "":
		return c.result, c.reason
	case c.scan.bytes == 0 && silent:
		return audit.ResultIdle, fmt.Sprintf("nothing was sent within %v", c.pipe.limits.PrefaceTimeout)
	case c.scan.bytes == 0:
		return audit.ResultIdle, "closed without anything being sent"
	case c.scan.alien:
		return audit.ResultRejected, "what was sent is not HTTP/2"
	case c.readErr == nil && c.pipe.stopping.Load():
		if c.scan.begun == 0 {
			return audit.ResultIdle, "the proxy stopped"
		}
		return c.afterRequests("the proxy stopped")
	case !c.established:
		return audit.ResultRejected, "HTTP/2 was begun and not carried through"
	case c.readErr == nil:
		return audit.ResultRejected, "closed for a breach of HTTP/2, too many pings or none answered"
	case c.scan.begun == 0:
		return audit.ResultIdle, "closed without a request"
	}
	return c.afterRequests("")
}

// afterRequests is the outcome of a connection on which requests were made and nothing was wrong.
func (c *conn) afterRequests(reason string) (result, text string) {
	if !c.acted.Load() { // the record itself says that nothing came of it
		return audit.ResultIdle, cmp.Or(reason, "closed, and no request on it was admitted")
	}
	return audit.ResultOK, reason
}

// alive returns nil while the process that opened the connection runs and is held.
func (c *conn) alive() error {
	c.mu.Lock()
	held := c.peer
	c.mu.Unlock()
	if held == nil {
		return errors.New("the caller was never identified")
	}
	return held.Alive()
}

// principal is the party that the connection, and all that is asked on it, counts for.
func (c *conn) principal() caller.Principal {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peer == nil {
		return caller.Principal{}
	}
	if c.key == nil {
		key := c.peer.Identity().Principal()
		c.key = &key
	}
	return *c.key
}

// identity returns what is known about the caller.
func (c *conn) identity() caller.Caller {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peer == nil {
		return caller.Caller{Assurance: caller.AssuranceNone}
	}
	return c.peer.Identity()
}
