package witness

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/test/audit/witnesstest"
)

func TestALogThatGrowsIsCosignedByAnyReplicaAndAfterARestart(t *testing.T) {
	first := newPlace(t, nil)
	n := witnesstest.NewNode(t, "win-1")
	first.gives(t, n)
	second := first.replica(t)
	if err := first.client(t).Send(t.Context(), n.Grow(3)); err != nil {
		t.Fatal(err)
	}
	if err := second.client(t).Send(t.Context(), n.Grow(2)); err != nil {
		t.Fatal(err)
	}
	first.server.Close()
	last := n.Grow(4)
	if err := first.replica(t).client(t).Send(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	n.Close()
	if known, began := first.cosignatures(); known != 0 || began != 1 || len(first.lines("audit log that nothing was remembered of")) != 1 {
		t.Errorf("the first replica: %d of a known log, %d of a new one", known, began)
	}
	if known, began := second.cosignatures(); known != 1 || began != 0 {
		t.Errorf("the second replica: %d of a known log, %d of a new one", known, began)
	}
	if diff := cmp.Diff(map[reason]int{reasonSize: 1}, second.refusals()); diff != "" {
		t.Errorf("what a new client asks first (-want +got):\n%s", diff)
	}
	e := first.memory.all[n.Origin()]
	if e.Pinned != "" {
		t.Errorf("a key was pinned that the operator gives: %q", e.Pinned)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, e.Checkpoint, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{
		Dir: n.Dir, Keys: keysOf(t, n.Key.LogKey(), first.key.WitnessKey()), Outside: []string{outside}, RequireWitness: true,
	})
	if err != nil || r.Fault != nil || r.Witnessed != last.Size || r.Verdict != evidence.VerdictIncomplete { // for the record of its end
		t.Errorf("%+v, fault %v: %v", r, r.Fault, err)
	}
}

func TestALogThatWasRolledBackIsRefusedAndNamed(t *testing.T) {
	p := newPlace(t, nil)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	client := p.client(t)
	if err := client.Send(t.Context(), n.Grow(3)); err != nil {
		t.Fatal(err)
	}
	before := n.Files()
	if err := client.Send(t.Context(), n.Grow(20)); err != nil {
		t.Fatal(err)
	}
	remembered := p.memory.all[n.Origin()]
	n.RollBack(before)
	for name, c := range map[string]*evidence.Client{"the same client": client, "a new one": p.client(t)} {
		if err := c.Send(t.Context(), n.Grow(2)); !errors.Is(err, evidence.ErrWitnessAhead) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := p.refusals()[reasonRollback]; got != 2 {
		t.Errorf("%v", p.refusals())
	}
	if err := p.client(t).Send(t.Context(), n.Grow(40)); !errors.Is(err, evidence.ErrWitnessRefuses) {
		t.Errorf("grown past what was cosigned: %v", err)
	}
	if got := p.refusals()[reasonProof]; got != 1 {
		t.Errorf("%v", p.refusals())
	}
	if diff := cmp.Diff(remembered, p.memory.all[n.Origin()]); diff != "" {
		t.Errorf("what is remembered has changed:\n%s", diff)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, remembered.Checkpoint, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{
		Dir: n.Dir, Keys: keysOf(t, n.Key.LogKey(), p.key.WitnessKey()), Outside: []string{outside}, RequireWitness: true,
	})
	if err != nil || r.Verdict != evidence.VerdictTampered {
		t.Errorf("what is remembered proves nothing: %+v: %v", r, err)
	}
	lines := p.lines("audit log was changed")
	if len(lines) != 3 || !strings.Contains(lines[0].ContextMap()["note"].(string), "it was rolled back") || lines[0].ContextMap()["name"] != n.Origin() {
		t.Errorf("%v", lines)
	}
	if len(p.events.said) != 3 || !strings.HasPrefix(p.events.said[0], "Node win-1 Warning AuditLogChanged Witness: ") {
		t.Errorf("%q", p.events.said)
	}
}

func TestAForkOfTheSameLengthIsRefused(t *testing.T) {
	p := newPlace(t, nil)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	n.Grow(1)
	before := n.Files()
	seen := n.Grow(8)
	if err := p.client(t).Send(t.Context(), seen); err != nil {
		t.Fatal(err)
	}
	n.RollBack(before)
	for c := n.Grow(1); c.Size <= seen.Size; c = n.Grow(1) {
		if c.Size == seen.Size {
			if err := p.client(t).Send(t.Context(), c); !errors.Is(err, evidence.ErrWitnessRefuses) {
				t.Errorf("%v", err)
			}
		}
	}
	if p.refusals()[reasonFork] == 0 || len(p.events.said) == 0 {
		t.Errorf("%v, %q", p.refusals(), p.events.said)
	}
}

func TestAnOldCheckpointThatSomebodySendsAgainIsNoRollback(t *testing.T) {
	p := newPlace(t, nil)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	client := p.client(t)
	old := n.Grow(2)
	for _, c := range []evidence.Copy{old, n.Grow(3)} {
		if err := client.Send(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if status := p.post(t, witnesstest.Request(t, 0, old)); status != 409 {
		t.Errorf("status %d", status)
	}
	if diff := cmp.Diff(map[reason]int{reasonLate: 1}, p.refusals()); diff != "" || len(p.events.said) != 0 || len(p.lines("audit log was changed")) != 0 {
		t.Errorf("%q (-want +got):\n%s", p.events.said, diff)
	}
}

// Anybody who has a checkpoint can take away the line that signs its time, by which an old one is told from a log that was rolled back.
func TestACheckpointWhoseTimeWasTakenAwayRaisesNoAlarmAndIsNotStored(t *testing.T) {
	p := newPlace(t, nil)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	undated := func(c evidence.Copy) evidence.Copy {
		text := strings.TrimSuffix(string(c.Raw), "\n")
		c.Raw = []byte(text[:strings.LastIndex(text, "\n")+1]) // the signature with the time is the last
		return c
	}
	old, last := n.Grow(2), n.Grow(3)
	if status := p.post(t, witnesstest.Request(t, 0, undated(last))); status != 403 { // before the node sends it
		t.Errorf("a growth: status %d", status)
	}
	if err := p.client(t).Send(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if status := p.post(t, witnesstest.Request(t, 0, undated(old))); status != 403 {
		t.Errorf("an old one: status %d", status)
	}
	if diff := cmp.Diff(map[reason]int{reasonKey: 2}, p.refusals()); diff != "" || len(p.events.said) != 0 || len(p.lines("audit log was changed")) != 0 {
		t.Errorf("%q (-want +got):\n%s", p.events.said, diff)
	}
}

func TestALogThatGoesOnBeingWrongIsToldOfAFewTimes(t *testing.T) {
	p := newPlace(t, nil)
	now := time.Now()
	p.loud.make = func() *bucket { return newBucket(3, 1.0/60, func() time.Time { return now }) }
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	before := n.Files()
	if err := p.client(t).Send(t.Context(), n.Grow(20)); err != nil {
		t.Fatal(err)
	}
	n.RollBack(before)
	for range 200 { // what strangers send takes nothing from what is told of a log
		p.post(t, "x")
	}
	for range 10 {
		p.post(t, witnesstest.Request(t, 0, n.Grow(1)))
	}
	if lines := p.lines("audit log was changed"); len(lines) != 3 || len(p.events.said) != 3 || p.refusals()[reasonRollback] != 10 {
		t.Errorf("%d lines, %d Events, %v", len(lines), len(p.events.said), p.refusals())
	}
	now = now.Add(time.Minute)
	p.post(t, witnesstest.Request(t, 0, n.Grow(1)))
	if lines := p.lines("audit log was changed"); len(lines) != 4 {
		t.Errorf("a minute later: %d lines", len(lines))
	}
}

func TestWhatNoLogHasSignedIsRefusedAndLeavesNothing(t *testing.T) {
	p := newPlace(t, nil)
	n, stranger, forged := witnesstest.NewNode(t, "win-1"), witnesstest.NewNode(t, "win-2"), witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	good := witnesstest.Request(t, 0, n.Grow(2))
	for name, c := range map[string]struct {
		body   string
		status int
		why    reason
	}{
		"nothing":                       {"", 400, reasonMalformed},
		"no checkpoint":                 {"old 0\n\nx\n", 400, reasonMalformed},
		"a proof that is none":          {strings.Replace(good, "\n", "\nx\n", 1), 400, reasonMalformed},
		"too much":                      {good + strings.Repeat("x", maxBody), 413, reasonOversize},
		"a little too much":             {good + strings.Repeat("x", maxBody-len(good)), 400, reasonMalformed},
		"an unknown log":                {witnesstest.Request(t, 0, stranger.Grow(2)), 404, reasonUnknown},
		"an origin without end":         {strings.ReplaceAll(good, n.Origin(), n.Origin()+strings.Repeat("x", 600)), 404, reasonUnknown},
		"another key":                   {witnesstest.Request(t, 0, forged.Grow(2)), 403, reasonKey},
		"the witness's key as a log's":  {strings.ReplaceAll(good, n.Origin(), p.key.Name()), 404, reasonUnknown},
		"another size under a root":     {strings.Replace(good, n.Origin()+"\n", n.Origin()+"\n1", 1), 403, reasonKey},
		"the old size of another state": {strings.Replace(good, "old 0", "old 1", 1), 409, reasonSize},
	} {
		before := p.refusals()[c.why]
		if status := p.post(t, c.body); status != c.status || p.refusals()[c.why] != before+1 {
			t.Errorf("%s: %d, want %d; %v", name, status, c.status, p.refusals())
		}
	}
	for _, line := range p.logs.All() {
		if name, _ := line.ContextMap()["name"].(string); len(name) > maxOrigin {
			t.Errorf("a stranger writes %d bytes into the log", len(name))
		}
	}
	if len(p.memory.all) != 0 || len(p.events.said) != 0 {
		t.Errorf("left: %v, %q", p.memory.all, p.events.said)
	}
	if status := p.post(t, good); status != 200 {
		t.Errorf("after all that: %d", status)
	}
}

func TestWithoutAKeyOrAMemoryNothingIsCosigned(t *testing.T) {
	p := newPlace(t, nil)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	good := witnesstest.Request(t, 0, n.Grow(2))
	key := p.key
	p.key = nil
	if status := p.post(t, good); status != 503 {
		t.Errorf("without a key: %d", status)
	}
	p.key = key
	p.memory.faults = []error{errDown}
	if status := p.post(t, good); status != 503 {
		t.Errorf("without a memory: %d", status)
	}
	p.memory.all[n.Origin()] = Entry{Checkpoint: []byte("who knows")}
	if status := p.post(t, good); status != 503 {
		t.Errorf("with a memory that is none: %d", status)
	}
	delete(p.memory.all, n.Origin())
	p.memory.between = func(origin string) { // somebody is always faster
		p.memory.mu.Lock()
		defer p.memory.mu.Unlock()
		p.memory.all[origin] = Entry{Pinned: p.memory.all[origin].Pinned + "x"}
	}
	if status := p.post(t, good); status != 503 {
		t.Errorf("while others are always faster: %d", status)
	}
	if diff := cmp.Diff(map[reason]int{reasonNoKey: 1, reasonStore: 3}, p.refusals()); diff != "" || p.memory.writes != 0 {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if lines := p.lines("witness cannot answer"); len(lines) != 4 || !strings.Contains(lines[1].ContextMap()["error"].(string), errDown.Error()) {
		t.Errorf("%v", lines)
	}
}

func TestOfReplicasThatRaceEachSignsOnlyWhatIsStored(t *testing.T) {
	p := newPlace(t, nil)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	places := []*place{p, p.replica(t), p.replica(t)}
	var copies []evidence.Copy
	for range 8 {
		copies = append(copies, n.Grow(2))
	}
	var running sync.WaitGroup
	for i := range 24 {
		running.Go(func() {
			err := places[i%3].client(t).Send(t.Context(), copies[i%8])
			if err != nil && !errors.Is(err, evidence.ErrWitnessAhead) && !strings.Contains(err.Error(), "503") && !strings.Contains(err.Error(), "cosigned") {
				t.Error(err)
			}
		})
	}
	running.Wait()
	cosigned := 0
	for _, one := range places {
		known, first := one.cosignatures()
		cosigned += known + first
		for why := range one.refusals() {
			if why.isChanged() {
				t.Errorf("an honest log was called %s", why)
			}
		}
	}
	if cosigned != p.memory.writes || cosigned == 0 {
		t.Errorf("%d cosignatures, %d writes", cosigned, p.memory.writes)
	}
}

func TestALogThatAsksWithoutEndIsToldToWait(t *testing.T) {
	p := newPlace(t, nil)
	now := time.Now()
	p.writes.make = func() *bucket { return newBucket(burstOfLog, perSecondOfLog, func() time.Time { return now }) }
	greedy, other := witnesstest.NewNode(t, "win-1"), witnesstest.NewNode(t, "win-2")
	p.gives(t, greedy)
	p.gives(t, other)
	client := p.client(t)
	for i := range burstOfLog + 3 {
		err := client.Send(t.Context(), greedy.Grow(1))
		if (err == nil) != (i < burstOfLog) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if err := p.client(t).Send(t.Context(), other.Grow(1)); err != nil {
		t.Errorf("another log: %v", err)
	}
	now = now.Add(time.Second)
	if err := client.Send(t.Context(), greedy.Grow(1)); err != nil {
		t.Errorf("a second later: %v", err)
	}
	if got := p.refusals()[reasonOften]; got != 3 {
		t.Errorf("%v", p.refusals())
	}
}

func TestTooManyRequestsAreRefusedBeforeTheyAreRead(t *testing.T) {
	p := newPlace(t, nil)
	now := time.Now()
	p.all = newBucket(2, 1, func() time.Time { return now })
	for i, want := range []int{400, 400, 429, 429} {
		if status := p.post(t, ""); status != want {
			t.Errorf("request %d: %d, want %d", i, status, want)
		}
	}
	now = now.Add(time.Second)
	for range mostAsking {
		p.asking <- struct{}{}
	}
	if status := p.post(t, ""); status != 429 {
		t.Errorf("while all places are taken: %d", status)
	}
	if got := p.refusals()[reasonBusy]; got != 3 {
		t.Errorf("%v", p.refusals())
	}
}

func TestStrangersCannotFillTheLog(t *testing.T) {
	p := newPlace(t, nil)
	for range 100 {
		p.post(t, "x")
	}
	if lines := p.lines("checkpoint not cosigned"); len(lines) > 4 {
		t.Errorf("%d lines", len(lines))
	}
}

func TestOptionsThatAreMissingAreAllNamed(t *testing.T) {
	_, err := New(Options{})
	if err == nil || strings.Count(err.Error(), "no ") != 5 {
		t.Errorf("%v", err)
	}
}

func TestACheckpointIsStoredAsVerificationTakesIt(t *testing.T) {
	p := newPlace(t, nil)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	sent := n.Grow(3)
	if err := p.client(t).Send(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	stored := p.memory.all[n.Origin()].Checkpoint
	c, err := keysOf(t, n.Key.LogKey(), p.key.WitnessKey()).Open(stored)
	if err != nil || len(c.Witnesses) != 1 || c.Head != sent.Head || !bytes.HasSuffix(stored, []byte("\n")) {
		t.Errorf("%+v: %v", c, err)
	}
}
