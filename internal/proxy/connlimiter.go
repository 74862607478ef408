package proxy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// connLimiter divides the places of one pipe among connections. A connection is pending until its caller is named. Then it takes a place of its
// caller's, or, if no rule names the caller, one of the few that all strangers share, so that strangers cannot take the places of callers that
// rules name.
//
// Where there are too many, one of the same share gives way. Of the connections of one caller that is the oldest on which nothing was ever asked,
// since stock clients leave such behind and do not miss them. Of a group that is full, it is one of the caller that has most of its places and
// more than the one that comes: the oldest on which nothing was ever asked, else the oldest without a request in progress. Of a pipe that is full, it
// is one of the group that has most.
// Only if there is none is the new one refused.
type connLimiter struct {
	limits  Limits
	pending *pendingConns // of all pipes

	mu       sync.Mutex // guards the fields below
	serial   uint64
	conns    map[*conn]place
	strange  int                      // of strangers
	named    int                      // of callers that rules name
	callers  map[caller.Principal]int // of those, by caller
	groups   map[string]int           // and by the account or namespace that a caller belongs to
	stopping bool
}

// place is the party that a connection counts for.
type place struct {
	stage  stage
	client uint32 // the process as it was noted at the accept
	caller caller.Principal
}

type stage int

// Stages of a connection.
const (
	waitsToBeNamed stage = iota
	ofAStranger
	ofACaller
)

// groupOf is the group of a caller: a namespace, or an account of the host. A group may not fill a pipe either.
func groupOf(who caller.Principal) string {
	if who.Container != "" {
		return "namespace " + who.Namespace
	}
	return "account " + who.User
}

// errStopping means that a connection came too late. It is no fault of the caller's.
var errStopping = errors.New("the proxy stopped")

// errCrowded is the end of connections that come more often than they may: of strangers, of one caller, and of a client process of which too
// many wait to be named. It is the same for all of them, so that one summary counts them.
var errCrowded = errors.New("the caller connects more often than it may")

// resultOf is the result in the record of a connection that was not taken.
func resultOf(err error) string {
	if errors.Is(err, errStopping) {
		return audit.ResultIdle
	}
	return audit.ResultRejected
}

func newConnLimiter(limits Limits, l *pendingConns) *connLimiter {
	return &connLimiter{limits: limits, pending: l, conns: map[*conn]place{}, callers: map[caller.Principal]int{}, groups: map[string]int{}}
}

// add takes in a connection that is pending.
func (t *connLimiter) add(c *conn) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopping {
		t.pending.leave(c.at.PID)
		return errStopping
	}
	t.serial++
	c.serial = t.serial
	t.conns[c] = place{stage: waitsToBeNamed, client: c.at.PID}
	return nil
}

// identify gives a connection a place of its caller's. The victim, if there is one, is out of the table and must be ended.
func (t *connLimiter) identify(c *conn, who caller.Principal, stranger bool) (victim *conn, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.conns[c]
	if !ok || t.stopping {
		return nil, errStopping
	}
	p.caller = who
	if stranger {
		p.stage = ofAStranger
		victim, err = t.roomForStranger(c)
	} else {
		p.stage = ofACaller
		victim, err = t.roomFor(c, who)
	}
	if err != nil {
		return nil, err
	}
	t.drop(c)
	t.conns[c] = p
	t.change(p, 1)
	return victim, nil
}

// roomForStranger makes room among the strangers: for one of them any other gives way that has no request in progress. t.mu must be held.
func (t *connLimiter) roomForStranger(c *conn) (victim *conn, err error) {
	if t.strange < t.limits.strangers() {
		return nil, nil
	}
	victim = t.oldest(c, func(other *conn, p place) bool {
		return p.stage == ofAStranger && other.busy.Load() == 0 && other.isStranger()
	})
	if victim == nil {
		return nil, fmt.Errorf("callers that no rule names have %d connections to this pipe, the most of all such callers together", t.strange)
	}
	t.drop(victim)
	return victim, nil
}

// roomFor makes room for a caller that rules name. t.mu must be held.
func (t *connLimiter) roomFor(c *conn, who caller.Principal) (victim *conn, err error) {
	group := groupOf(who)
	switch {
	case t.callers[who] >= t.limits.ConnectionsPerCaller:
		victim = t.oldest(c, func(other *conn, p place) bool { return p.stage == ofACaller && p.caller == who && !other.asked.Load() })
		err = fmt.Errorf("the caller holds %d connections to this pipe, the most it may hold", t.callers[who])
	case t.groups[group] >= t.limits.perGroup():
		victim = t.ofTheLargest(c, who, func(other caller.Principal) int {
			if groupOf(other) != group {
				return 0
			}
			return t.callers[other]
		})
		err = fmt.Errorf("callers of %s hold %d connections to this pipe, the most they may hold", group, t.groups[group])
	case t.named >= t.limits.Connections:
		victim = t.ofTheLargest(c, who, func(other caller.Principal) int { return t.groups[groupOf(other)] })
		err = fmt.Errorf("the pipe has %d connections, the most it may have", t.named)
	default:
		return nil, nil
	}
	if victim == nil {
		return nil, err
	}
	t.drop(victim)
	return victim, nil
}

// ofTheLargest is the connection without a request in progress that gives way to c, of who. It is one of those that size, which counts what a caller
// or its group has, is largest for. That is more than for who, also afterwards if something was asked on the connection; of who's own, one gives way
// on which nothing was. t.mu must be held.
func (t *connLimiter) ofTheLargest(c *conn, who caller.Principal, size func(caller.Principal) int) (found *conn) {
	most, has := 0, size(who)
	for other, p := range t.conns {
		if other == c || p.stage != ofACaller || other.busy.Load() > 0 {
			continue
		}
		n, asked := size(p.caller), other.asked.Load()
		if asked && n <= has+1 || p.caller != who && n <= has {
			continue
		}
		n *= 2
		if !asked {
			n++
		}
		if n > most || n == most && other.serial < found.serial {
			found, most = other, n
		}
	}
	return found
}

// oldest is the connection, other than c, that came first of those that match. t.mu must be held.
func (t *connLimiter) oldest(c *conn, matches func(*conn, place) bool) (found *conn) {
	for other, p := range t.conns {
		if other != c && (found == nil || other.serial < found.serial) && matches(other, p) {
			found = other
		}
	}
	return found
}

func (t *connLimiter) remove(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(c)
}

// drop frees the place of a connection, if it has one. t.mu must be held.
func (t *connLimiter) drop(c *conn) {
	p, ok := t.conns[c]
	if !ok {
		return
	}
	delete(t.conns, c)
	t.change(p, -1)
}

// change counts a place by. t.mu must be held.
func (t *connLimiter) change(p place, by int) {
	switch p.stage {
	case waitsToBeNamed:
		t.pending.leave(p.client) // it was counted when it entered, and never enters again
	case ofAStranger:
		t.strange += by
	case ofACaller:
		t.named += by
		count(t.callers, p.caller, by)
		count(t.groups, groupOf(p.caller), by)
	}
}

// count forgets what comes to nothing.
func count[K comparable](m map[K]int, key K, by int) {
	if m[key] += by; m[key] == 0 {
		delete(m, key)
	}
}

// stop refuses further connections and returns those that are there.
func (t *connLimiter) stop() []*conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopping = true
	return slices.Collect(maps.Keys(t.conns))
}
