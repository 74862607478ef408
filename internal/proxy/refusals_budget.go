package proxy

import (
	"time"

	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// budget is a rate of records, and what may be taken beyond it for those that are written in any case.
type budget struct {
	acl.Rate
	overdraft float64
}

// has says whether n may be taken of a budget now; of what is recorded in any case, into the overdraft.
func (r *budget) has(used *acl.Bucket, n float64, inAnyCase bool, now time.Time) bool {
	left := used.Left(r.Rate, now)
	if inAnyCase {
		left += r.overdraft
	}
	return n <= left
}

// isWhole says that nothing of a budget is used up.
func (r *budget) isWhole(used *acl.Bucket, now time.Time) bool {
	return used.Left(r.Rate, now) >= r.Most
}

// budgets are what records of refusals may take.
type budgets struct {
	records   budget // of one caller
	bytes     budget // of one caller
	strangers budget // bytes of all strangers together
	period    time.Duration
	longest   time.Duration // of periods
	tight     time.Duration // the longest one while the log has no room for records of refusals
}

// refusalBudgets let a caller have 60 records a minute and at most 10 MB in any hour, of which the overdraft is for the first record of each kind
// and for summaries. All strangers together have at most 50 MB in any hour.
var refusalBudgets = budgets{
	records:   budget{acl.Rate{Most: 60, PerSecond: 1}, maxKindsOfCaller},
	bytes:     budget{acl.Rate{Most: 2e6, PerSecond: 6e6 / 3600}, 2e6},
	strangers: budget{acl.Rate{Most: 10e6, PerSecond: 30e6 / 3600}, 10e6},
	period:    time.Minute, longest: 10 * time.Minute, tight: 24 * time.Hour,
}

// Bounds of the memory for refusals. One kind of refusal takes up to some 8 KiB, if it names long paths.
const (
	maxRefused       = 1024 // callers of a class that are told apart; those beyond are counted as one
	maxKinds         = 1024 // kinds of refusals in a class
	maxKindsOfCaller = 256
	// maxAtStop is how many summaries of a class a stop writes beside those that stand for all others, of which there is one for each pipe
	// and result. summariesAtOnce is how many are given to the log at once.
	maxAtStop       = 128
	summariesAtOnce = 256
	// maxReasons is how many reasons are told apart of what is otherwise one kind. Some reasons repeat what the caller sent.
	maxReasons = 4
)
