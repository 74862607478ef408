package witness

import (
	"errors"
	"net/http"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

// reason says why no cosignature was given.
type reason string

// Reasons that only a log's own key can cause, by a checkpoint that it signed minutes ago at most: it was changed.
const (
	reasonRollback reason = "rollback" // fewer records than were cosigned, signed later than those
	reasonFork     reason = "fork"     // as many records, and not the same, signed no earlier than those
	reasonProof    reason = "proof"    // more records, and no proof that those before are among them, signed no earlier than those
	reasonPin      reason = "pin"      // signed by the key that the node names now, and another one is pinned
)

// Other reasons, which a client without the log's key can cause.
const (
	reasonLate      reason = "late" // it does not go on from what was cosigned, and was signed before that: an old checkpoint
	reasonTime      reason = "time" // signed at a time too far from the witness's
	reasonSize      reason = "size" // the client had to ask from which size on; it asks again
	reasonKey       reason = "key"  // signed by no key of the log
	reasonUnknown   reason = "unknown"
	reasonMalformed reason = "malformed"
	reasonOversize  reason = "oversize"
	reasonBusy      reason = "busy"     // too many ask at once
	reasonOften     reason = "often"    // the log grows, or is signed anew, too often
	reasonRepeated  reason = "repeated" // as many records, and signed no later, under a key of the witness that did not cosign them
	reasonStore     reason = "store"    // the memory cannot be read or written, or others were always faster
	reasonNoKey     reason = "no-key"
)

// allReasons have a series each from the start, so that the first of a kind is an increase.
func allReasons() []reason {
	return []reason{
		reasonRollback, reasonFork, reasonProof, reasonPin, reasonLate, reasonTime, reasonSize, reasonKey, reasonUnknown, reasonMalformed,
		reasonOversize, reasonBusy, reasonOften, reasonRepeated, reasonStore, reasonNoKey,
	}
}

// isChanged says whether a log must have been changed.
func (r reason) isChanged() bool {
	return r == reasonRollback || r == reasonFork || r == reasonProof || r == reasonPin
}

// reasonOf reads an answer that was no cosignature.
func (a *attempt) reasonOf(status int) reason {
	switch {
	case a.refusal != nil && a.refusal.Reason == evidence.RefusedTime:
		return reasonTime
	case a.refusal != nil && a.isLate():
		return reasonLate
	case a.refusal != nil && a.refusal.Reason == evidence.RefusedFork:
		return reasonFork
	case a.refusal != nil && a.refusal.Reason == evidence.RefusedProof:
		return reasonProof
	case a.refusal != nil:
		return reasonRollback
	}
	switch status {
	case http.StatusConflict:
		return reasonSize
	case http.StatusForbidden:
		return reasonKey
	case http.StatusNotFound:
		return reasonUnknown
	case http.StatusTooManyRequests:
		return reasonRepeated
	case http.StatusServiceUnavailable:
		if errors.Is(a.err, errTooOften) {
			return reasonOften
		}
		if errors.Is(a.err, errTooLong) {
			return reasonOversize
		}
		return reasonStore
	}
	return reasonMalformed
}

// isLate says whether the refused checkpoint was signed before the one that is remembered, so that it may be a message that was late, or
// that was sent once more: of this log, or of one that was in its place until the operator let it start over. Within one second a log
// signs more than one size, but none twice. Without both times it is taken for the worse.
func (a *attempt) isLate() bool {
	refused, last := a.refusal.SignedAt, a.refusal.LastSignedAt
	if refused.IsZero() || last.IsZero() {
		return false
	}
	return refused.Before(last) || a.refusal.Reason == evidence.RefusedBehind && refused.Equal(last)
}
