package publish

import (
	"fmt"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/bundle"
)

// Reason is the reason of a condition about the bundles.
type Reason string

// Reasons.
const (
	ReasonPublished Reason = "Published"
	ReasonUnfit     Reason = "Unfit"       // the policies make no bundle
	ReasonTooLarge  Reason = "TooLarge"    // they make one that no ConfigMap holds
	ReasonConflict  Reason = "Conflict"    // others write to the ConfigMap without end
	ReasonStore     Reason = "StoreFailed" // the API server could not be asked
	ReasonKey       Reason = "KeyUnfit"    // there is no key to sign with
)

// Result is what became of the bundle of a pool.
type Result struct {
	Pool string
	// Revision, PolicyRevision and ExpiresAt are those of the bundle that is published; zero after an error.
	Revision       uint64
	PolicyRevision string
	ExpiresAt      time.Time
	// Written says that it was published now and had not been before.
	Written bool
	Reason  Reason
	Err     error
}

func failed(pool string, err error) Result {
	r := Result{Pool: pool, Reason: ReasonUnfit, Err: err}
	if bundle.ReasonOf(err) == bundle.ReasonSize {
		r.Reason = ReasonTooLarge
		r.Err = fmt.Errorf("the policies are too many for one bundle: give the pools fewer, or shorter lists: %w", err)
	}
	return r
}

// Condition puts the results of all pools into the words of a condition: whether all are published, and the first
// reason why not.
func Condition(results []Result) (ok bool, reason Reason, message string) {
	var done, faults []string
	reason = ReasonPublished
	for _, r := range results {
		if r.Err == nil {
			done = append(done, fmt.Sprintf("%s at revision %d", r.Pool, r.Revision))
			continue
		}
		if len(faults) == 0 {
			reason = r.Reason
		}
		faults = append(faults, fmt.Sprintf("pool %s: %v", r.Pool, r.Err))
	}
	if len(faults) > 0 {
		return false, reason, strings.Join(faults, "\n")
	}
	return len(done) > 0, reason, strings.Join(done, ", ")
}
