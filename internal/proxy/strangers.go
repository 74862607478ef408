package proxy

import (
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// strangers bound how many connections of callers that no rule names are served, over all pipes. Each costs a record, and naming its
// caller. A stranger that comes now and then is served and denied call by call, with a record of each.
type strangers struct {
	each, all *acl.Limiter

	mu   sync.Mutex           // guards away
	away map[client]time.Time // until when client processes are turned away at the accept
}

// client is a process and the pipe that it is a stranger to: on others a rule may name it.
type client struct {
	pipe string
	pid  uint32
}

func newStrangers() *strangers {
	return &strangers{each: acl.NewLimiter(maxAway), all: acl.NewLimiter(1), away: map[client]time.Time{}}
}

// admit says whether a stranger's connection is served. If not, its process is turned away at the accept for a while: that asks
// nobody who it is. A number that is given to another process in that time costs that one a second.
func (s *strangers) admit(who callerKey, at client) bool {
	if s.each.Call(who, "", acl.Limits{CallsPerSecond: 1, Burst: strangersBurst}) &&
		s.all.Call(callerKey{}, "", acl.Limits{CallsPerSecond: strangersPerSecond, Burst: strangersPerSecond * strangersBurst}) {
		return true
	}
	s.turnAway(at)
	return false
}

// turnAway has a client process turned away at the accept for a while.
func (s *strangers) turnAway(at client) {
	if at.pid == 0 { // it stands for all whose number is not known
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.away) >= maxAway {
		clear(s.away)
	}
	s.away[at] = time.Now().Add(awayFor)
}

// isAway says whether a client process is turned away now.
func (s *strangers) isAway(at client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.away[at]
	if ok && time.Now().After(until) {
		delete(s.away, at)
		return false
	}
	return ok
}
