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
	ReasonPublished  Reason = "Published"
	ReasonUnreadable Reason = "Unreadable"  // it is published, and there are nodes that cannot read it
	ReasonUnfit      Reason = "Unfit"       // the policies make no bundle
	ReasonTooLarge   Reason = "TooLarge"    // they make one that no ConfigMap holds
	ReasonConflict   Reason = "Conflict"    // others write to the ConfigMap without end
	ReasonStore      Reason = "StoreFailed" // the API server could not be asked
	ReasonKey        Reason = "KeyUnfit"    // there is no key to sign with
)

// Result is the outcome of publishing the bundle of a pool.
type Result struct {
	Pool string
	// Revision, PolicyRevision and ExpiresAt are those of the bundle that is published; zero after an error.
	Revision       uint64
	PolicyRevision string
	ExpiresAt      time.Time
	// Schemas are the forms of the bundle and of its access list; none after an error.
	Schemas []string
	// Unread names the nodes that report and cannot read it, and Unknown says why they could not be found.
	Unread  []string
	Unknown error
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

// maxNamed is how many nodes of a pool a message names. The counts of nodes name more.
const maxNamed = 3

// unread says that nodes cannot read what is published, or that it is unknown; empty if all can.
func (r Result) unread() string {
	schemas := strings.Join(r.Schemas, " and ")
	if r.Unknown != nil {
		return fmt.Sprintf("which of its nodes read %s is unknown: %v", schemas, r.Unknown)
	}
	if len(r.Unread) == 0 {
		return ""
	}
	names := strings.Join(r.Unread[:min(len(r.Unread), maxNamed)], ", ")
	if len(r.Unread) > maxNamed {
		names += ", …"
	}
	return fmt.Sprintf("%d of its nodes cannot read %s, and keep the bundle before until it ends: %s", len(r.Unread), schemas, names)
}

// Condition puts the results of all pools into the words of a condition: whether all are published, and the first
// reason why not, or why nodes have nothing of it.
func Condition(results []Result) (ok bool, reason Reason, message string) {
	var done, faults, notes []string
	reason = ReasonPublished
	for _, r := range results {
		if r.Err == nil {
			line := fmt.Sprintf("%s at revision %d", r.Pool, r.Revision)
			if note := r.unread(); note != "" {
				notes = append(notes, line+" ("+note+")")
			} else {
				done = append(done, line)
			}
			if len(faults) == 0 && r.Reason == ReasonUnreadable {
				reason = r.Reason
			}
			continue
		}
		if len(faults) == 0 {
			reason = r.Reason
		}
		faults = append(faults, fmt.Sprintf("pool %s: %v", r.Pool, r.Err))
	}
	if len(faults) > 0 {
		return false, reason, strings.Join(append(faults, notes...), "\n")
	}
	return len(results) > 0, reason, strings.Join(append(notes, done...), ", ") // what is long may be cut off
}
