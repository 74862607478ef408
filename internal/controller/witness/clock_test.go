package witness

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/test/audit/witnesstest"
)

// later is behind all that a log signed before.
const later = evidence.ClockTolerance + 2*time.Minute

// quiet says that refusals were counted, and that nothing was told of the log.
func (p *place) quiet(t *testing.T, want map[reason]int) {
	t.Helper()
	if diff := cmp.Diff(want, p.refusals()); diff != "" || len(p.events.said) != 0 || len(p.lines("audit log was changed")) != 0 {
		t.Errorf("%q (-want +got):\n%s", p.events.said, diff)
	}
}

// begun is a log that an operator let start over under the key that it had, and the checkpoints of the one before.
func begun(t *testing.T, p *place, n *witnesstest.Node) (former []evidence.Copy) {
	t.Helper()
	client := p.client(t)
	for range 6 {
		c := n.Grow(1)
		if err := client.Send(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		former = append(former, c)
	}
	n.RollBack(nil)
	p.passes(time.Minute)
	delete(p.memory.all, n.Origin())
	return former
}

func TestACheckpointOfAFormerLogBeginsNoNewOne(t *testing.T) {
	p := newPlace(t, nil)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	former := begun(t, p, n)
	p.passes(later)
	n.Ahead(later + time.Minute)
	for _, c := range former { // before the node asks
		if status := p.post(t, witnesstest.Request(t, 0, c)); status != 403 {
			t.Errorf("%d records: %d", c.Size, status)
		}
	}
	if len(p.memory.all) != 0 {
		t.Errorf("stored: %v", p.memory.all)
	}
	if err := p.client(t).Send(t.Context(), n.Grow(1)); err != nil {
		t.Errorf("the node's own: %v", err)
	}
	p.quiet(t, map[reason]int{reasonTime: len(former)})
}

// Nobody waited before the log was let start over, but the node was faster.
func TestCheckpointsOfAFormerLogAreLateAndNoContradiction(t *testing.T) {
	p := newPlace(t, nil)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	former := begun(t, p, n)
	client := p.client(t)
	late, sizes := 0, map[int]int{}
	for range 4 {
		own := n.Grow(1)
		if err := client.Send(t.Context(), own); err != nil {
			t.Fatal(err)
		}
		before := p.memory.all[n.Origin()]
		for _, c := range former {
			status := p.post(t, witnesstest.Request(t, min(own.Size, c.Size), c))
			if want := map[int]int{-1: 409, 0: 409, 1: 422}[compare(c, own)]; status != want {
				t.Errorf("%d records of the former log, and %d: %d, want %d", c.Size, own.Size, status, want)
			}
			sizes[compare(c, own)]++
			late++
		}
		if diff := cmp.Diff(before, p.memory.all[n.Origin()]); diff != "" {
			t.Errorf("something was stored:\n%s", diff)
		}
	}
	if len(sizes) != 3 {
		t.Errorf("not less, as many and more records: %v", sizes)
	}
	p.quiet(t, map[reason]int{reasonLate: late})
}

func compare(c, with evidence.Copy) int {
	switch {
	case c.Size < with.Size:
		return -1
	case c.Size > with.Size:
		return 1
	}
	return 0
}

func TestWhatWasSignedWhileAClockWasAheadRaisesNoAlarm(t *testing.T) {
	p := newPlace(t, nil)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	client := p.client(t)
	n.Ahead(time.Hour)
	ahead := n.Grow(2)
	if err := client.Send(t.Context(), ahead); !errors.Is(err, evidence.ErrWitnessClock) {
		t.Errorf("an hour ahead: %v", err)
	}
	n.Ahead(0)
	if err := client.Send(t.Context(), n.Grow(3)); err != nil {
		t.Fatalf("put right: %v", err)
	}
	before := p.memory.all[n.Origin()]
	for range 5 {
		if status := p.post(t, witnesstest.Request(t, 0, ahead)); status != 403 {
			t.Errorf("sent again: %d", status)
		}
	}
	if diff := cmp.Diff(before, p.memory.all[n.Origin()]); diff != "" {
		t.Errorf("something was stored:\n%s", diff)
	}
	p.quiet(t, map[reason]int{reasonTime: 6})
}

func TestWhatWasHeldBackShowsNoLife(t *testing.T) {
	p := newPlace(t, nil)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	if err := p.client(t).Send(t.Context(), n.Grow(2)); err != nil {
		t.Fatal(err)
	}
	size := n.Grow(0).Size
	held := []evidence.Copy{n.Idle(), n.Grow(2)} // and the node dies
	before := p.memory.all[n.Origin()]
	p.passes(later)
	for _, c := range held {
		if status := p.post(t, witnesstest.Request(t, size, c)); status != 403 {
			t.Errorf("%d records: %d", c.Size, status)
		}
	}
	if diff := cmp.Diff(before, p.memory.all[n.Origin()]); diff != "" {
		t.Errorf("something was stored:\n%s", diff)
	}
	if known, _ := p.cosignatures(); known != 0 || value(p.metrics.repeated) != 0 {
		t.Errorf("%d cosignatures", known)
	}
	p.quiet(t, map[reason]int{reasonTime: len(held)})
}

func TestANodeWhoseClockIsWrongIsToldSo(t *testing.T) {
	p := newPlace(t, nil)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	client := p.client(t)
	for _, off := range []time.Duration{-later, later, -24 * time.Hour, 24 * time.Hour} {
		n.Ahead(off)
		err := client.Send(t.Context(), n.Grow(1))
		if !errors.Is(err, evidence.ErrWitnessClock) || errors.Is(err, evidence.ErrWitnessAhead) || errors.Is(err, evidence.ErrWitnessRefuses) {
			t.Errorf("%s ahead: %v", off, err)
		}
	}
	if len(p.memory.all) != 0 {
		t.Errorf("stored: %v", p.memory.all)
	}
	lines := p.lines("checkpoint not cosigned")
	if len(lines) == 0 || lines[0].ContextMap()["name"] != n.Origin() || !strings.Contains(lines[0].ContextMap()["note"].(string), "a clock is wrong") {
		t.Errorf("%v", lines)
	}
	p.quiet(t, map[reason]int{reasonTime: 4})
	for _, off := range []time.Duration{-time.Minute, time.Minute} { // as clocks differ
		n.Ahead(off)
		if err := client.Send(t.Context(), n.Grow(1)); err != nil {
			t.Errorf("%s ahead: %v", off, err)
		}
	}
}

// Who has the node can sign a time. One before what was cosigned is not believed: the fork is called late, and is not cosigned.
func TestAForkIsNeverCosignedWhateverItsTime(t *testing.T) {
	for off, why := range map[time.Duration]reason{-time.Minute: reasonLate, time.Minute: reasonFork, -later: reasonTime, later: reasonTime} {
		p := newPlace(t, nil)
		n := witnesstest.NewNode(t, "win-1")
		p.gives(t, n)
		seen := n.Grow(8)
		if err := p.client(t).Send(t.Context(), seen); err != nil {
			t.Fatal(err)
		}
		before := p.memory.all[n.Origin()]
		n.RollBack(nil)
		n.Ahead(off)
		for c := n.Grow(1); c.Size <= seen.Size; c = n.Grow(1) {
			if c.Size == seen.Size {
				if err := p.client(t).Send(t.Context(), c); err == nil {
					t.Errorf("%s ahead: cosigned", off)
				}
			}
		}
		if diff := cmp.Diff(before, p.memory.all[n.Origin()]); diff != "" || p.refusals()[why] == 0 {
			t.Errorf("%s ahead: %v, stored:\n%s", off, p.refusals(), diff)
		}
	}
}
