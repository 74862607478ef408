package proxy

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// shares divide the requests in progress, from their headers to their answers, over all pipes. Each holds up to a window of
// undecoded bytes and its headers, whether or not its caller will ever be allowed anything: so strangers together have one
// small share, no caller has more than its own, and no request waits.
type shares struct {
	strangers, caller, total int

	mu                sync.Mutex // guards the fields below
	used              int
	passed            int // of calls that are passed on unread
	byStrangers       int
	passedByStrangers int // of those, calls that would be passed on unread
	byCaller          map[shareOf[caller.Principal]]int
	byGroup           map[shareOf[string]]int
}

// shareOf is a caller or a group with its calls that are passed on unread, or with its others.
type shareOf[T comparable] struct {
	who    T
	passed bool
}

// newShares leaves a caller as much as the queue of operations lets it have, and some more for what is being refused.
func newShares(perOwner int) *shares {
	each := perOwner + spareRequests
	return &shares{strangers: strangersRequests, caller: each, total: callersAtOnce * each, byCaller: map[shareOf[caller.Principal]]int{}, byGroup: map[shareOf[string]]int{}}
}

// take counts a request until release is called, once. An error says whose share is used up. Of calls that are passed on unread there are
// fewer, since their messages are large, also of strangers': under LogOnly they are served. Such a call of a stranger takes both of their shares.
func (s *shares) take(who caller.Principal, stranger, passed bool) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stranger {
		most, used := s.strangers, &s.byStrangers
		if passed {
			most, used = forwardedRequests, &s.passedByStrangers
		}
		if *used >= most {
			return nil, status.Errorf(codes.ResourceExhausted, "%d requests are in progress of callers that no rule names, the most of all such callers together", most)
		}
		*used++
		return func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			*used--
		}, nil
	}
	key, group := shareOf[caller.Principal]{who, passed}, shareOf[string]{groupOf(who), passed}
	caller, total, used := s.caller, s.total, &s.used
	if passed {
		caller, total, used = forwardedRequests, forwardedTotal, &s.passed
	}
	switch {
	case s.byCaller[key] >= caller:
		return nil, status.Errorf(codes.ResourceExhausted, "the caller has %d requests in progress, the most it may have", caller)
	case s.byGroup[group] >= ofGroup(total):
		return nil, status.Errorf(codes.ResourceExhausted, "callers of %s have %d requests in progress, the most they may have", group.who, ofGroup(total))
	case *used >= total:
		return nil, status.Errorf(codes.ResourceExhausted, "%d requests are in progress, the most that may be", total)
	}
	change := func(by int) {
		*used += by
		count(s.byCaller, key, by)
		count(s.byGroup, group, by)
	}
	change(1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		change(-1)
	}, nil
}

// errLate ends a request that is not whole in time.
var errLate = status.Error(codes.DeadlineExceeded, fmt.Sprintf("the request was not whole within %v of its headers", wholeWithin))

// errUnfinished ends a request that is not whole when the proxy stops.
var errUnfinished = status.Error(codes.Unavailable, "the proxy stopped before the request was whole")
