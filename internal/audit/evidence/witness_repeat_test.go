package evidence

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// repeated is a witness that is given checkpoints of one size.
type repeated struct {
	t       *testing.T
	key     *Key // the witness's
	log     []*Key
	store   stored
	head    Head
	now, at time.Time // the witness's clock and the log's
	old     int       // answers that were given before
}

// stored keeps a checkpoint for each log, whose text is its version.
type stored map[string][]byte

// Last implements Store.
func (s stored) Last(_ context.Context, origin string) ([]byte, string, error) {
	return s[origin], string(s[origin]), nil
}

// Swap implements Store.
func (s stored) Swap(_ context.Context, origin, version string, checkpoint []byte) error {
	if string(s[origin]) != version {
		return ErrChanged
	}
	s[origin] = bytes.Clone(checkpoint)
	return nil
}

func newRepeated(t *testing.T) *repeated {
	t.Helper()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	return &repeated{
		t: t, key: newKey(t, "example.com/witness"), log: []*Key{newKey(t, origin)}, store: stored{}, head: Head{Origin: origin, Size: 1, Root: leafOf(1)}, now: at, at: at,
	}
}

func leafOf(b byte) [32]byte { return Leaf([]byte{b}) }

// signed is a checkpoint of the log by some keys.
func (r *repeated) signed(keys ...*Key) []byte {
	r.t.Helper()
	raw, err := sign(r.head, r.at, keys...)
	if err != nil {
		r.t.Fatal(err)
	}
	return raw
}

// asks gives the witness a checkpoint and returns its answer, and whether something else is stored then.
func (r *repeated) asks(old uint64, raw []byte, proof ...tlog.Hash) (status int, lines []byte, isStored bool) {
	r.t.Helper()
	var known Keys
	for _, k := range r.log {
		known = known.And(keysOf(r.t, k.LogKey()))
	}
	w, err := NewWitness(WitnessOptions{
		Key: r.key, Store: r.store, Now: func() time.Time { return r.now }, OnRepeated: func() { r.old++ },
		Keys: func(context.Context, string) (Keys, error) { return known, nil },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	before, _, _ := r.store.Last(r.t.Context(), origin)
	out := httptest.NewRecorder()
	w.ServeHTTP(out, httptest.NewRequest(http.MethodPost, AddCheckpointPath, bytes.NewReader(request{old, proof, raw}.encode())))
	after, _, err := r.store.Last(r.t.Context(), origin)
	if err != nil {
		r.t.Fatal(err)
	}
	return out.Code, out.Body.Bytes(), !bytes.Equal(before, after)
}

// takes gives it one that is new to it.
func (r *repeated) takes(old uint64, raw []byte, proof ...tlog.Hash) []byte {
	r.t.Helper()
	status, lines, isStored := r.asks(old, raw, proof...)
	if status != 200 || !isStored || len(lines) == 0 {
		r.t.Fatalf("%d %q, stored: %t", status, lines, isStored)
	}
	return lines
}

// Anyone with a copy of a checkpoint can send it. Only the log's key can sign it again, which shows that the node is alive.
func TestAWitnessThatIsGivenWhatItCosignedSaysNothingNew(t *testing.T) {
	r := newRepeated(t)
	first := r.signed(r.log[0])
	lines := r.takes(0, first)
	for range 3 {
		r.now = r.now.Add(time.Minute)
		if status, again, isStored := r.asks(1, first); status != 200 || !bytes.Equal(again, lines) || isStored {
			t.Errorf("again: %d %q, stored: %t", status, again, isStored)
		}
	}
	r.at = r.at.Add(time.Minute)
	newer := r.takes(1, r.signed(r.log[0]))
	if bytes.Equal(newer, lines) {
		t.Error("signed anew: the witness's time is the old one")
	}
	r.now = r.now.Add(time.Minute)
	status, again, isStored := r.asks(1, first)
	if status != 200 || !bytes.Equal(again, newer) || isStored {
		t.Errorf("the first once more: %d %q, stored: %t", status, again, isStored)
	}
	if c, err := keysOf(t, r.log[0].LogKey(), r.key.WitnessKey()).Open(append(bytes.Clone(first), again...)); err != nil || len(c.Witnesses) != 1 {
		t.Errorf("the answer does not fit the question: %+v: %v", c, err)
	}
	if r.old != 4 {
		t.Errorf("%d answers were told of", r.old)
	}
}

// A log whose clock was a little ahead is signed earlier for a while. It is answered, and goes on.
func TestALogWhoseClockWasAheadGoesOn(t *testing.T) {
	r := newRepeated(t)
	right := r.at
	r.at = right.Add(ClockTolerance)
	lines := r.takes(0, r.signed(r.log[0]))
	r.at, r.now = right.Add(time.Minute), right.Add(time.Minute)
	if status, again, isStored := r.asks(1, r.signed(r.log[0])); status != 200 || !bytes.Equal(again, lines) || isStored {
		t.Errorf("while it does not grow: %d %q, stored: %t", status, again, isStored)
	}
	var tree leafRange
	tree.append(leafOf(1))
	tree.append(leafOf(2))
	r.head.Size, r.head.Root = 2, tree.root()
	r.takes(1, r.signed(r.log[0]), leafOf(2))
	r.at, r.now = r.at.Add(time.Minute), r.now.Add(time.Minute)
	r.takes(2, r.signed(r.log[0]))
}

// With a replaced key a later time could be added to what the new key signed.
func TestTheTimeOfAReplacedKeyMakesNoCheckpointNewer(t *testing.T) {
	r := newRepeated(t)
	old, next := r.log[0], newKey(t, origin)
	r.log = append(r.log, next)
	raw := r.signed(next)
	lines := r.takes(0, raw)
	n, err := note.Open(raw, keysOf(t, next.LogKey()).of(origin))
	if err != nil {
		t.Fatal(err)
	}
	forged, err := note.Sign(n, signer{old, algCosign, r.at.AddDate(1, 0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	r.now = r.now.Add(time.Minute)
	if status, again, isStored := r.asks(1, forged); status != 200 || !bytes.Equal(again, lines) || isStored {
		t.Errorf("%d %q, stored: %t", status, again, isStored)
	}
	r.at = r.at.Add(time.Minute)
	r.takes(1, r.signed(next))
}

func TestANewKeyOfTheLogSignsTheSameRecordsAnew(t *testing.T) {
	r := newRepeated(t)
	r.takes(0, r.signed(r.log[0]))
	next := newKey(t, origin)
	r.log = append(r.log, next)
	r.takes(1, r.signed(next, r.log[0]))
}

// A witness's new key has cosigned nothing yet, and a replay is no reason to.
func TestANewKeyOfTheWitnessCosignsNoReplay(t *testing.T) {
	r := newRepeated(t)
	first := r.signed(r.log[0])
	r.takes(0, first)
	r.key = newKey(t, r.key.Name())
	if status, _, isStored := r.asks(1, first); status != http.StatusTooManyRequests || isStored {
		t.Errorf("%d, stored: %t", status, isStored)
	}
	r.at = r.at.Add(time.Minute)
	r.takes(1, r.signed(r.log[0]))
	if r.old != 0 {
		t.Errorf("%d answers are old", r.old)
	}
}
