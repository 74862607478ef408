package proxy

import (
	"math"
	"time"
)

// rate says how fast something may be used up.
type rate struct {
	most      float64 // at once
	perSecond float64
	overdraft float64 // what may be taken beyond that of things that are recorded in any case
}

// allowance is a token bucket. The zero value is full.
type allowance struct {
	used float64
	at   time.Time
}

// left is how much may be taken now.
func (a *allowance) left(r rate, now time.Time) float64 {
	if !a.at.IsZero() {
		a.used = math.Max(0, a.used-now.Sub(a.at).Seconds()*r.perSecond)
	}
	a.at = now
	return r.most - a.used
}

// has says whether n may be taken now; of what is recorded in any case, into the overdraft.
func (a *allowance) has(r rate, n float64, inAnyCase bool, now time.Time) bool {
	left := a.left(r, now)
	if inAnyCase {
		left += r.overdraft
	}
	return n <= left
}

// budgets are what records of refusals may take.
type budgets struct {
	records   rate // of one caller
	bytes     rate // of one caller
	strangers rate // bytes of all strangers together
	period    time.Duration
	longest   time.Duration // of periods
	tight     time.Duration // the longest one while the log has no room for records of refusals
}

// theBudgets let a caller have 60 records a minute and at most 10 MB in any hour, of which the overdraft is for the first record of each kind
// and for summaries. All strangers together have at most 50 MB in any hour.
var theBudgets = budgets{
	records:   rate{most: 60, perSecond: 1, overdraft: maxKindsOfCaller},
	bytes:     rate{most: 2e6, perSecond: 6e6 / 3600, overdraft: 2e6},
	strangers: rate{most: 10e6, perSecond: 30e6 / 3600, overdraft: 10e6},
	period:    time.Minute, longest: 10 * time.Minute, tight: 24 * time.Hour,
}

// Bounds of the memory for refusals. One kind of refusal takes up to some 8 KiB, if it names long paths.
const (
	maxRefused       = 1024 // callers of a class that are told apart; those beyond are counted as one
	maxKinds         = 1024 // kinds of refusals in a class
	maxKindsOfCaller = 256
	// maxReasons is how many reasons are told apart of what is otherwise one kind. Some reasons repeat what the caller sent.
	maxReasons = 4
)
