package proxy

import (
	"maps"
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// strangers bound how many connections of callers that no rule names are served, over all pipes. Each costs a record, and naming its
// caller. A stranger that comes now and then is served and denied call by call, with a record of each.
type strangers struct {
	each, all *acl.Limiter

	mu   sync.Mutex           // guards away
	away map[client]time.Time // client processes that are turned away at the accept, and when one of their connections is not
}

// client is a process and the pipe that it is a stranger to: on others a rule may name it.
type client struct {
	pipe string
	pid  uint32
}

func newStrangers() *strangers {
	return &strangers{each: acl.NewLimiter(maxAway), all: acl.NewLimiter(1), away: map[client]time.Time{}}
}

// admit says whether a stranger's connection is served. If not, its process is turned away at the accept from then on, which asks
// nobody who it is, but for one connection in awayFor that shows whether the rules, or the process of that number, are others by now.
func (s *strangers) admit(who callerKey, at client) bool {
	if s.each.Call(who, "", acl.Limits{CallsPerSecond: 1, Burst: strangersBurst}) &&
		s.all.Call(callerKey{}, "", acl.Limits{CallsPerSecond: strangersPerSecond, Burst: strangersPerSecond * strangersBurst}) {
		return true
	}
	s.turnAway(at)
	return false
}

// welcome has a client process be turned away no more.
func (s *strangers) welcome(at client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.away, at)
}

// turnAway has a client process turned away at the accept.
func (s *strangers) turnAway(at client) {
	if at.pid == 0 { // it stands for all whose number is not known
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if len(s.away) >= maxAway {
		maps.DeleteFunc(s.away, func(_ client, until time.Time) bool { return now.After(until) })
	}
	if len(s.away) >= maxAway {
		clear(s.away)
	}
	s.away[at] = now.Add(awayFor)
}

// isAway says whether a connection of a client process is turned away. One in awayFor is not: were all of a storm let in that come until
// the first is named, each of them would be named. A process that was quiet for as long again is like any other.
func (s *strangers) isAway(at client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.away[at]
	now := time.Now()
	switch {
	case !ok || now.Before(until):
		return ok
	case now.Sub(until) > awayFor:
		delete(s.away, at)
	default:
		s.away[at] = now.Add(awayFor)
	}
	return false
}
