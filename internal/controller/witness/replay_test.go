package witness

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/test/audit/witnesstest"
)

// still stops the clock by which logs are told to wait.
func (p *place) still() {
	now := time.Now()
	p.writes.make = func() *bucket { return newBucket(burstOfLog, perSecondOfLog, func() time.Time { return now }) }
	p.repeats.make = p.writes.make
}

// Anybody can send what a ConfigMap or a collector shows.
func TestACheckpointThatSomebodySendsWithoutEndDelaysNoGrowthAndShowsNoLife(t *testing.T) {
	p := newPlace(t, nil)
	p.still()
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	last := n.Grow(2)
	if status := p.post(t, witnesstest.Request(t, 0, last)); status != 200 {
		t.Fatalf("%d", status)
	}
	before := p.memory.all[n.Origin()]
	for range 3 * burstOfLog {
		if status := p.post(t, witnesstest.Request(t, last.Size, last)); status != 200 {
			t.Errorf("%d", status)
		}
	}
	if diff := cmp.Diff(before, p.memory.all[n.Origin()]); diff != "" {
		t.Errorf("something was stored:\n%s", diff)
	}
	if known, began := p.cosignatures(); known != 0 || began != 1 {
		t.Errorf("%d cosignatures of a known log, %d of a new one", known, began)
	}
	if got := value(p.metrics.repeated); got != 3*burstOfLog {
		t.Errorf("%d repetitions", got)
	}
	if status := p.post(t, witnesstest.Request(t, last.Size, n.Grow(1))); status != 200 || len(p.refusals()) != 0 {
		t.Errorf("the node's own: %d, %v", status, p.refusals())
	}
}

func TestALogThatIsIdleShowsThatItLives(t *testing.T) {
	p := newPlace(t, nil)
	p.still()
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	client := p.client(t)
	if err := client.Send(t.Context(), n.Grow(2)); err != nil {
		t.Fatal(err)
	}
	for i := range burstOfLog + 3 {
		before := p.memory.all[n.Origin()].Checkpoint
		p.passes(time.Minute)
		err := client.Send(t.Context(), n.Idle())
		if isFew := i < burstOfLog; (err == nil) != isFew || !bytes.Equal(p.memory.all[n.Origin()].Checkpoint, before) != isFew {
			t.Errorf("minute %d: %v", i, err)
		}
	}
	if known, _ := p.cosignatures(); known != burstOfLog || p.refusals()[reasonOften] != 3 {
		t.Errorf("%d cosignatures, %v", known, p.refusals())
	}
	if err := client.Send(t.Context(), n.Grow(1)); err != nil {
		t.Errorf("growth waits for what is idle: %v", err)
	}
}

func TestANewKeyOfTheWitnessIsNoFaultOfALog(t *testing.T) {
	p := newPlace(t, nil)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	last := n.Grow(2)
	if status := p.post(t, witnesstest.Request(t, 0, last)); status != 200 {
		t.Fatalf("%d", status)
	}
	p.key = witnesstest.NewKey(t, p.key.Name())
	if status := p.post(t, witnesstest.Request(t, last.Size, last)); status != 429 {
		t.Errorf("a replay: %d", status)
	}
	if diff := cmp.Diff(map[reason]int{reasonRepeated: 1}, p.refusals()); diff != "" || p.memory.writes != 1 {
		t.Errorf("%d were stored (-want +got):\n%s", p.memory.writes, diff)
	}
	if status := p.post(t, witnesstest.Request(t, last.Size, n.Idle())); status != 200 {
		t.Errorf("a minute later: %d", status)
	}
}
