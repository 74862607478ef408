package proxy

import (
	"maps"
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"

	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// arrivalLimiter bounds how many new connections are served, over all pipes. Each costs a record, and naming its caller. A stranger that comes
// now and then is served and denied call by call, with a record of each.
type arrivalLimiter struct {
	named, each, all *acl.Limiter // callers that rules name, each stranger, all strangers

	mu   sync.Mutex           // guards away
	away map[client]time.Time // client processes that are turned away at the accept, and when one of their connections is not
}

// client is a process and a pipe that it comes to too often: to others it may be no stranger.
type client struct {
	pipe string
	pid  uint32
}

func newArrivalLimiter() *arrivalLimiter {
	return &arrivalLimiter{named: acl.NewLimiter(0), each: acl.NewLimiter(maxAway), all: acl.NewLimiter(1), away: map[client]time.Time{}}
}

// admit says whether a connection is served. If not, its process is turned away at the accept from then on without being identified,
// except for one connection in awayFor that shows whether the rules, or the process of that number, have changed.
func (n *arrivalLimiter) admit(who caller.Principal, stranger bool, at client) bool {
	if !stranger {
		if !n.named.Call(who, "", access.Limits{CallsPerSecond: newPerSecond, Burst: newBurst}) {
			n.turnAway(at)
			return false
		}
		n.welcome(at)
		return true
	}
	if n.each.Call(who, "", access.Limits{CallsPerSecond: 1, Burst: strangersBurst}) &&
		n.all.Call(caller.Principal{}, "", access.Limits{CallsPerSecond: strangersPerSecond, Burst: strangersPerSecond * strangersBurst}) {
		return true
	}
	n.turnAway(at)
	return false
}

// welcome stops turning a client process away.
func (n *arrivalLimiter) welcome(at client) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.away, at)
}

// turnAway has a client process turned away at the accept.
func (n *arrivalLimiter) turnAway(at client) {
	if at.pid == 0 { // it stands for all whose number is not known
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if len(n.away) >= maxAway {
		maps.DeleteFunc(n.away, func(_ client, until time.Time) bool { return now.After(until) })
	}
	if len(n.away) >= maxAway {
		clear(n.away)
	}
	n.away[at] = now.Add(awayFor)
}

// isAway says whether a connection of a client process is turned away. One in awayFor is not: were all of a storm let in that come until
// the first is named, each of them would be named. A process that was quiet for as long again is like any other.
func (n *arrivalLimiter) isAway(at client) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	until, ok := n.away[at]
	now := time.Now()
	switch {
	case !ok || now.Before(until):
		return ok
	case now.Sub(until) > awayFor:
		delete(n.away, at)
	default:
		n.away[at] = now.Add(awayFor)
	}
	return false
}
