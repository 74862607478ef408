package proxy

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// shares divide the requests in progress, from their headers to their answers, over all pipes. Each holds up to a window of
// undecoded bytes and its headers, whether or not its caller will ever be allowed anything: so strangers together have one
// small share, no caller has more than its own, and nobody waits.
type shares struct {
	strangers, caller, total int

	mu          sync.Mutex // guards what follows
	used        int
	byStrangers int
	byCaller    map[callerKey]int
}

// newShares leaves a caller as much as the queue of operations lets it have, and some more for what is being refused.
func newShares(perOwner int) *shares {
	caller := perOwner + spareRequests
	return &shares{strangers: strangersRequests, caller: caller, total: callersAtOnce * caller, byCaller: map[callerKey]int{}}
}

// take counts a request until release is called, once. An error says whose share is used up.
func (s *shares) take(who callerKey, stranger bool) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stranger {
		if s.byStrangers >= s.strangers {
			return nil, status.Errorf(codes.ResourceExhausted, "%d requests are in progress of callers that no rule names, the most of all such callers together", s.strangers)
		}
		s.byStrangers++
		return func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.byStrangers--
		}, nil
	}
	if s.byCaller[who] >= s.caller {
		return nil, status.Errorf(codes.ResourceExhausted, "the caller has %d requests in progress, the most it may have", s.caller)
	}
	if s.used >= s.total {
		return nil, status.Errorf(codes.ResourceExhausted, "%d requests are in progress, the most that may be", s.total)
	}
	s.used++
	s.byCaller[who]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.used--
		if s.byCaller[who]--; s.byCaller[who] == 0 {
			delete(s.byCaller, who)
		}
	}, nil
}

// errLate ends a request that is not whole in time.
var errLate = status.Error(codes.DeadlineExceeded, fmt.Sprintf("the request was not whole within %v of its headers", wholeWithin))

// errUnfinished ends a request that is not whole when the proxy stops.
var errUnfinished = status.Error(codes.Unavailable, "the proxy stopped before the request was whole")
