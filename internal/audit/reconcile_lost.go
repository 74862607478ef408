package audit

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

const noIntent = "ends an operation that has no intent"

// withoutIntent takes an end whose operation was let through. Without the number of an intent there may have been none: a writer that
// continues without a log lets intents go, counts them, and says how many in the next segment that it can begin. That may
// be before this record or, if only a full disk refused them, after it.
func (r *reconciler) withoutIntent(e Event) {
	switch {
	case e.IntentSeq != 0 && e.IntentSeq < r.first && len(r.early) < maxIntents:
		r.early = append(r.early, Event{Session: keyOf(e.Session), Seq: e.Seq, ID: keyOf(e.ID), IntentSeq: e.IntentSeq})
	case e.IntentSeq != 0 || len(r.waiting) >= maxFaults:
		r.fault(e, noIntent)
	case r.lost > 0:
		r.lost--
		r.report.Unrecorded++
	default:
		r.waiting = append(r.waiting, Event{Session: strings.Clone(e.Session), Seq: e.Seq, ID: strings.Clone(e.ID)})
	}
}

// excuse counts the ends whose intents were removed with the oldest segments of the log.
func (r *reconciler) excuse(prunedUntil func() (uint64, error)) error {
	if len(r.early) == 0 {
		return nil
	}
	until, err := prunedUntil()
	if err != nil {
		return err
	}
	for _, e := range r.early {
		if e.IntentSeq <= until {
			r.report.Pruned++
		} else {
			r.fault(e, noIntent)
		}
	}
	return nil
}

// letGo takes what a writer says of records that it let go: each explains one end without an intent, at most.
func (r *reconciler) letGo(lost uint64) {
	explained := min(lost, uint64(len(r.waiting)))
	r.waiting = r.waiting[explained:]
	r.report.Unrecorded += int(explained) //nolint:gosec // no more than wait
	r.lost = max(r.lost, r.lost+lost-explained)
}

// settle ends a session: another one's records explain nothing of it.
func (r *reconciler) settle() {
	for _, e := range r.waiting {
		r.fault(e, noIntent)
	}
	r.waiting, r.lost = nil, 0
}

// maxName is longer than any id or session that a writer makes.
const maxName = 128

// keyOf is what a reader remembers of a name. Those of a log that was made up may be as long as a record, and hundreds of
// thousands are remembered.
func keyOf(name string) string {
	if len(name) <= maxName {
		return strings.Clone(name) // the texts of an event are parts of its line
	}
	return fmt.Sprintf("%q…%x", name[:maxName/2], sha256.Sum256([]byte(name)))
}
