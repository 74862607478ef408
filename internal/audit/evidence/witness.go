package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Store keeps, for each log, the last checkpoint that a witness cosigned. Losing it lets every log start over unnoticed.
type Store interface {
	// Last returns what Swap stored last for a log, and a version of it; nil if nothing was ever stored.
	Last(ctx context.Context, origin string) (checkpoint []byte, version string, err error)
	// Swap stores a checkpoint durably if the version is still that one, and else returns ErrChanged.
	Swap(ctx context.Context, origin, version string, checkpoint []byte) error
}

// ErrChanged means that another replica of the witness was faster.
var ErrChanged = errors.New("changed in between")

// WitnessOptions configure a witness.
type WitnessOptions struct {
	// Key cosigns. It must serve no other purpose, and above all must not be a log's key.
	Key *Key
	// Keys returns the keys of a log; no keys for a log that is not known. An error leaves the request unanswered.
	Keys  func(ctx context.Context, origin string) (Keys, error)
	Store Store
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// OnRefused is told of every checkpoint that a log signed and that does not go on from what was cosigned before: the log was
	// rolled back or forked, or an answer was lost; and of those whose time is not the witness's. It may be nil.
	OnRefused func(Refused)
	// OnRepeated is called for each checkpoint that is answered with the stored cosignature. May be nil.
	OnRepeated func()
}

// ClockTolerance is how far the time that a log signed may be before or behind a witness's clock. A checkpoint that was held back or copied
// is valid for no longer, and what a log signed while its clock was wrong is refused while it is. Kerberos lets clocks differ by half of it.
const ClockTolerance = 10 * time.Minute

// Refused is a checkpoint that a log signed and a witness did not.
type Refused struct {
	Head
	SignedAt     time.Time // by the log
	Last         Head      // what the witness cosigned last; nothing for RefusedTime, which is held against the clock alone
	LastSignedAt time.Time // zero if no key that counts says so
	Reason       RefusedReason
}

// RefusedReason says how a checkpoint and the one before contradict each other.
type RefusedReason string

// Reasons. Time is no contradiction, and behind may be a late message. So may the others if they were signed before what was cosigned, by a
// log that was let start over since; else they are a log that was changed.
const (
	RefusedBehind RefusedReason = "behind" // fewer records than were cosigned
	RefusedFork   RefusedReason = "fork"   // as many records and another root
	RefusedProof  RefusedReason = "proof"  // more records, which the proof does not show to contain those before
	RefusedTime   RefusedReason = "time"   // signed more than ClockTolerance before or behind the witness's clock
)

// Witness cosigns checkpoints of logs, each only if it contains what was cosigned before.
type Witness struct{ o WitnessOptions }

// NewWitness returns a witness.
func NewWitness(o WitnessOptions) (*Witness, error) {
	var faults []error
	if o.Key == nil {
		faults = append(faults, errors.New("no key"))
	}
	if o.Keys == nil {
		faults = append(faults, errors.New("no keys of logs"))
	}
	if o.Store == nil {
		faults = append(faults, errors.New("no store"))
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("audit witness: %w", errors.Join(faults...))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OnRefused == nil {
		o.OnRefused = func(Refused) {}
	}
	if o.OnRepeated == nil {
		o.OnRepeated = func() {}
	}
	return &Witness{o}, nil
}

// answer is a status of the protocol and its text. https://c2sp.org/tlog-witness
type answer struct {
	status int
	text   string
	size   uint64    // with 409, of the last checkpoint
	clock  time.Time // the witness's, if the log's time is too far from it
}

func (a answer) Error() string { return a.text }

func refuse(status int, format string, args ...any) error {
	return answer{status: status, text: fmt.Sprintf(format, args...)}
}

// maxRaces bounds how often a cosignature is tried while other replicas are faster.
const maxRaces = 5

// cosign returns the lines of signature for a request, or an answer that refuses it.
func (w *Witness) cosign(ctx context.Context, body []byte) ([]byte, error) {
	r, err := parseRequest(body)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	head, err := Inspect(r.checkpoint)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	keys, err := w.o.Keys(ctx, head.Origin)
	if err != nil {
		return nil, err
	}
	if len(keys.all) == 0 {
		return nil, refuse(http.StatusNotFound, "log %q is not known", head.Origin)
	}
	c, err := keys.Open(r.checkpoint)
	if err != nil {
		return nil, refuse(http.StatusForbidden, "the checkpoint is not signed by a key of log %q", head.Origin)
	}
	// The log signs a time with each checkpoint. Without it, an old one that is sent again would look like a log that was rolled back.
	if c.SignedAt.IsZero() {
		return nil, refuse(http.StatusForbidden, "the time of the checkpoint is not signed by the key of log %q that signed the checkpoint", head.Origin)
	}
	if r.old > head.Size {
		return nil, refuse(http.StatusBadRequest, "the old size %d is larger than the checkpoint's, %d", r.old, head.Size)
	}
	if err := w.holdToClock(c); err != nil {
		return nil, err
	}
	for range maxRaces {
		lines, err := w.advance(ctx, r, c, keys)
		if !errors.Is(err, ErrChanged) {
			return lines, err
		}
	}
	return nil, ErrChanged
}

// holdToClock refuses a checkpoint that was not signed now. It comes before all that could be stored, or be told of the log: who has an old
// checkpoint, or one that was signed while the log's clock was ahead, can send it.
func (w *Witness) holdToClock(c Checkpoint) error {
	now := w.o.Now()
	if off := c.SignedAt.Sub(now); -ClockTolerance <= off && off <= ClockTolerance {
		return nil
	}
	w.o.OnRefused(Refused{Head: c.Head, SignedAt: c.SignedAt, Reason: RefusedTime})
	return answer{status: http.StatusForbidden, text: "the time of the checkpoint is not the witness's", clock: now}
}

// stored opens what was cosigned last with the keys that count now. A time that no checkpoint may have now counts as none: it was taken by a
// clock of the witness that was ahead too, and would stand before all that the log signs until then.
func (w *Witness) stored(raw []byte, keys Keys) (Checkpoint, error) {
	c, err := keys.Open(raw)
	if err == nil && c.SignedAt.Sub(w.o.Now()) > ClockTolerance {
		c.SignedAt = time.Time{}
	}
	return c, err
}

// advance holds a checkpoint to the last one and stores it in its place.
func (w *Witness) advance(ctx context.Context, r request, c Checkpoint, keys Keys) ([]byte, error) {
	raw, version, err := w.o.Store.Last(ctx, c.Origin)
	if err != nil {
		return nil, err
	}
	last := Head{Origin: c.Origin}
	if raw != nil {
		if last, err = Inspect(raw); err != nil || last.Origin != c.Origin {
			return nil, fmt.Errorf("the stored checkpoint of %q cannot be read: %w", c.Origin, errors.Join(err, ErrCheckpoint))
		}
	}
	var before Checkpoint
	if raw != nil {
		if before, err = w.stored(raw, keys); err == nil && c.rank < before.rank {
			return nil, refuse(http.StatusForbidden, "the checkpoint is signed by an older key of log %q than the one before; the keys of a log are listed in the order in which they replaced each other", c.Origin)
		}
	}
	refused := func(reason RefusedReason) {
		w.o.OnRefused(Refused{c.Head, c.SignedAt, last, before.SignedAt, reason})
	}
	if c.Size < last.Size {
		refused(RefusedBehind)
	}
	if c.Size == last.Size && last.Size > 0 && c.Root != last.Root {
		refused(RefusedFork)
		return nil, answer{status: http.StatusConflict, text: "another root was cosigned", size: last.Size}
	}
	if r.old != last.Size {
		return nil, answer{status: http.StatusConflict, text: "another size was cosigned", size: last.Size}
	}
	switch {
	case last.Size == 0 || last.Size == c.Size:
		if len(r.proof) > 0 {
			return nil, refuse(http.StatusUnprocessableEntity, "a proof from %d records to %d has no hashes", last.Size, c.Size)
		}
		if raw != nil && c.Size == last.Size && !c.isNewer(before) {
			return w.again(raw, c)
		}
	case tlog.CheckTree(r.proof, int64(c.Size), c.Root, int64(last.Size), last.Root) != nil: // #nosec G115 -- below MaxSize
		refused(RefusedProof)
		return nil, refuse(http.StatusUnprocessableEntity, "the proof does not show that %d records grew to %d", last.Size, c.Size)
	}
	return w.sign(ctx, c, keys, version)
}

// again answers a checkpoint that says nothing new with the cosignature that is stored: anyone with a copy can send it, so it changes nothing.
// Another key's cosignature, or one of a text with other extension lines, is no answer.
func (w *Witness) again(raw []byte, c Checkpoint) ([]byte, error) {
	n, err := note.Open(raw, note.VerifierList(w.o.Key.verifier(algCosign)))
	if err != nil || !bytes.HasPrefix(c.Raw, []byte(n.Text+"\n")) {
		return nil, refuse(http.StatusTooManyRequests, "a checkpoint of %d records was cosigned that was signed no earlier", c.Size)
	}
	alone, err := note.Sign(&note.Note{Text: n.Text, Sigs: n.Sigs})
	if err != nil {
		return nil, err
	}
	w.o.OnRepeated()
	return alone[len(n.Text)+1:], nil
}

// sign stores the checkpoint with the cosignature before it lets the latter go. What is stored must be read again the next time, so strangers'
// signatures are left out, under the log's name too: adding them needs no key.
func (w *Witness) sign(ctx context.Context, c Checkpoint, keys Keys, version string) ([]byte, error) {
	n, err := note.Open(c.Raw, keys.of(c.Origin))
	if err != nil {
		return nil, fmt.Errorf("open checkpoint again: %w", err)
	}
	mine := signer{w.o.Key, algCosign, w.o.Now()}
	alone, err := note.Sign(&note.Note{Text: n.Text}, mine)
	if err != nil {
		return nil, err
	}
	n.Sigs = slices.DeleteFunc(n.Sigs, func(s note.Signature) bool { return s.Name != c.Origin })
	n.UnverifiedSigs = nil
	whole, err := note.Sign(n, mine)
	if err != nil {
		return nil, err
	}
	if len(whole) > maxNote {
		return nil, refuse(http.StatusBadRequest, "with the cosignature the checkpoint is longer than %d bytes", maxNote)
	}
	if err := w.o.Store.Swap(ctx, c.Origin, version, whole); err != nil {
		return nil, err
	}
	return alone[len(n.Text)+1:], nil
}
