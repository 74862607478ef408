package witness

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

// Errors of an attempt. The client is not told of them: it asks again.
var (
	errTooOften = errors.New("the log asks too often")
	// errOtherKey means that other keys of the log were remembered while it asked.
	errOtherKey = errors.New("signed by none of the keys that count for the log now")
)

// attempt is one request for a cosignature: it finds the keys, is the evidence.Store, and notes the result for the log, Events and metrics.
// It is used by one goroutine.
type attempt struct {
	h *Handler

	origin   string        // of the log that asks, empty until the witness has read the request
	given    evidence.Keys // by the operator
	reported string        // by the node, empty if it was not asked
	turn     Turn          // the last one that was begun, nil if none was
	entry    Entry         // of that turn
	hasPlace bool          // among those of the log
	refusal  *evidence.Refused
	isOld    bool  // the answer was given before
	err      error // what kept the witness from answering
}

var _ evidence.Store = (*attempt)(nil)

func some(keys evidence.Keys) bool { return len(keys.Describe()) > 0 }

// fail keeps an error that the client is not told.
func (a *attempt) fail(err error) error {
	a.err = err
	return err
}

// keys returns those of a log: the operator's, else those that are pinned, else the one that the node names.
func (a *attempt) keys(ctx context.Context, origin string) (evidence.Keys, error) {
	if len(origin) > maxOrigin { // no key has such a name, and it must not get into the log
		return evidence.Keys{}, nil
	}
	a.origin = origin
	if a.given = a.h.o.Given(origin); some(a.given) || a.h.o.Reported == nil {
		return a.given, nil
	}
	if _, ok := nodeOf(origin); !ok {
		return evidence.Keys{}, nil
	}
	pinned, err := a.h.o.Memory.Pinned(ctx, origin)
	if err == nil && pinned == "" {
		a.reported, err = a.h.o.Reported(ctx, origin)
	}
	if err != nil {
		return evidence.Keys{}, a.fail(err)
	}
	keys, err := a.of(Entry{Pinned: pinned})
	return keys, a.fail(err)
}

// of returns the keys that count for what is remembered.
func (a *attempt) of(e Entry) (evidence.Keys, error) {
	if some(a.given) {
		return a.given, nil
	}
	text := cmp.Or(e.Pinned, a.reported)
	if text == "" {
		return evidence.Keys{}, nil
	}
	keys, err := evidence.ParseKeys(text)
	if err != nil {
		return evidence.Keys{}, fmt.Errorf("ConfigMap %s: keys: %w", ConfigMapName(a.origin), err)
	}
	return keys, nil
}

// Last implements evidence.Store. It begins a turn.
func (a *attempt) Last(ctx context.Context, origin string) ([]byte, string, error) {
	a.end()
	if !a.enter(origin) {
		return nil, "", a.fail(errTooOften)
	}
	turn, err := a.h.o.Memory.Begin(ctx, origin)
	if err != nil {
		return nil, "", a.fail(err)
	}
	a.turn, a.entry = turn, turn.Entry()
	return a.entry.Checkpoint, "", nil // the turn knows the version
}

// end ends the turn, if one was begun.
func (a *attempt) end() {
	if a.turn != nil {
		a.turn.End()
	}
}

// enter takes a place of the log, once.
func (a *attempt) enter(origin string) bool {
	most := mostAsking
	if len(a.h.asking) > mostAsking/2 {
		most = mostOfLog
	}
	a.hasPlace = a.hasPlace || a.h.waiting.take(origin, most)
	return a.hasPlace
}

// leave ends the attempt.
func (a *attempt) leave() {
	a.end()
	if a.hasPlace {
		a.h.waiting.giveBack(a.origin)
	}
}

// Swap implements evidence.Store. The key that a node names is pinned with the first checkpoint that it has signed. Another replica may have
// pinned another one since the keys were asked for: what is written is signed by what stands beside it.
func (a *attempt) Swap(ctx context.Context, origin, _ string, checkpoint []byte) error {
	keys, err := a.of(a.entry)
	if err != nil {
		return a.fail(err)
	}
	c, err := keys.Open(checkpoint)
	if err != nil {
		return a.fail(errOtherKey)
	}
	allowance := &a.h.writes
	if last, err := evidence.Inspect(a.entry.Checkpoint); err == nil && last.Size == c.Size {
		allowance = &a.h.repeats
	}
	if !allowance.take(origin) {
		return a.fail(errTooOften)
	}
	next := Entry{Checkpoint: checkpoint, Pinned: a.entry.Pinned}
	if !some(a.given) && next.Pinned == "" {
		next.Pinned = a.reported + "\n"
	}
	return a.fail(a.turn.Write(ctx, next))
}
