package bundle

import (
	"errors"

	"github.com/pipeguard/pipeguard/internal/atmost"
)

// Reason says in one word why a bundle was refused. Reasons are few, so that metrics can have them as labels.
type Reason string

// Reasons of a Refusal.
const (
	ReasonSize      Reason = "size"         // larger than the bounds, packed or unpacked
	ReasonArchive   Reason = "archive"      // cut off, or not an archive of the one form that is taken
	ReasonContent   Reason = "content"      // a file that does not belong in a bundle, or has content that is not allowed
	ReasonUnsigned  Reason = "unsigned"     // no signature, or a file that it does not cover
	ReasonKey       Reason = "key"          // signed with a key that is not pinned
	ReasonSignature Reason = "signature"    // the signature or a file's hash does not fit
	ReasonAudience  Reason = "audience"     // for another pool of nodes
	ReasonExpired   Reason = "expired"      // its validity period is over
	ReasonNotYet    Reason = "not-yet"      // its validity period has not begun: one of two clocks is wrong
	ReasonRollback  Reason = "rollback"     // older than one that was seen
	ReasonTwice     Reason = "two-contents" // other content under a revision that was seen
	ReasonTest      Reason = "self-test"    // it does not compile, or fails a test
	ReasonStore     Reason = "store"        // it cannot be kept, so it would be forgotten
	ReasonNone      Reason = "none"         // there is no bundle
)

// Refusal is why a bundle is not used.
type Refusal struct {
	Reason Reason
	Err    error
}

// Error gives the reason and what is behind it.
func (r *Refusal) Error() string { return "bundle refused: " + string(r.Reason) + ": " + r.Err.Error() }

// Unwrap returns what is behind the reason.
func (r *Refusal) Unwrap() error { return r.Err }

// ReasonOf returns the reason of a refusal; empty if err is none.
func ReasonOf(err error) Reason {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Reason
	}
	return ""
}

func refuse(reason Reason, err error) error { return &Refusal{reason, err} }

// refuseSize makes a Refusal of an atmost.SizeError.
func refuseSize(text []byte, err error) ([]byte, error) {
	if _, ok := errors.AsType[*atmost.SizeError](err); ok {
		err = refuse(ReasonSize, err)
	}
	return text, err
}
