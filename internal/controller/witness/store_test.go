package witness

import (
	"bytes"
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/test/audit/witnesstest"
)

// onServer makes a witness whose memory is on an API server.
func onServer(t *testing.T) (*place, *api) {
	t.Helper()
	server, p := newAPI(), newPlace(t, nil)
	p.o.Memory = server.memory()
	return p, server
}

// last is what is remembered of a log, by a replica that has just been started.
func last(t *testing.T, server *api, origin string) Entry {
	t.Helper()
	turn, err := server.memory().Begin(t.Context(), origin)
	if err != nil {
		t.Fatal(err)
	}
	turn.End()
	return turn.Entry()
}

func sends(t *testing.T, p *place, c evidence.Copy) {
	t.Helper()
	if err := p.client(t).Send(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func TestTheFirstCheckpointOfALogIsItsOwnAndLaterOnesAreShared(t *testing.T) {
	p, server := onServer(t)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	var sent evidence.Copy
	for i := range 3 {
		sent = n.Grow(2)
		sends(t, p, sent)
		if own, shared := server.writes(); own != 1 || shared != i {
			t.Errorf("checkpoint %d: %d writes of its own, %d shared", i, own, shared)
		}
	}
	e := last(t, server, n.Origin())
	c, err := keysOf(t, n.Key.LogKey(), p.key.WitnessKey()).Open(e.Checkpoint)
	if err != nil || c.Head != sent.Head || len(c.Witnesses) != 1 {
		t.Errorf("%+v: %v", c, err)
	}
	l := server.lines(t, n.Origin())[n.Origin()]
	if l.Records != sent.Size || l.CosignedAt == "" || l.Checkpoint != string(e.Checkpoint) {
		t.Errorf("%+v", l)
	}
}

// Who may update ConfigMaps and not delete them lets no log start over.
func TestAMemoryThatWasEmptiedIsNoNewLog(t *testing.T) {
	p, server := onServer(t)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	before := n.Files()
	sends(t, p, n.Grow(9))
	sends(t, p, n.Grow(1))
	n.RollBack(before)
	back := witnesstest.Request(t, 0, n.Grow(1))
	name, shared := ConfigMapName(n.Origin()), ShardName(n.Origin())
	good, lines := server.get(name).Data, server.get(shared).BinaryData[keyLines]
	refuses := func(what string) {
		t.Helper()
		if _, err := server.memory().Begin(t.Context(), n.Origin()); !errors.Is(err, ErrMemory) {
			t.Errorf("%s: %v", what, err)
		}
		if status := p.post(t, back); status != http.StatusServiceUnavailable {
			t.Errorf("%s: a log that was rolled back: %d", what, status)
		}
	}
	for what, data := range map[string]map[string]string{
		"without data":         nil,
		"without a checkpoint": {keyOrigin: n.Origin()},
		"an empty checkpoint":  {keyOrigin: n.Origin(), keyFirst: ""},
		"with a pin alone":     {keyPinned: n.Key.LogKey() + "\n"},
		"without an origin":    {keyFirst: good[keyFirst]},
		"of both releases":     {keyOrigin: n.Origin(), keyFirst: good[keyFirst], keyAlone: good[keyFirst]},
	} {
		server.put(name, data, nil)
		refuses(what)
	}
	server.put(name, good, nil)
	twice := server.lines(t, n.Origin())[n.Origin()].encode()
	for what, data := range map[string]map[string][]byte{
		"a shard without data":      nil,
		"one that was cut":          {keyLines: lines[:len(lines)/2]},
		"one that is no gzip":       {keyLines: []byte("{}\n")},
		"one with a log twice":      {keyLines: compressed(t, append(twice, twice...))},
		"one with something else":   {keyLines: compressed(t, []byte(`{"origin":"x","checkpoint":"y"}`+"\n"))},
		"one with an unknown field": {keyLines: compressed(t, bytes.Replace(twice, []byte(`{`), []byte(`{"x":1,`), 1))},
	} {
		server.put(shared, nil, data)
		refuses(what)
	}
	server.remove(shared) // what came before the log shared its checkpoints goes on protecting it
	if status := p.post(t, back); status != http.StatusConflict || p.refusals()[reasonRollback] != 1 {
		t.Errorf("without the shard: %d, %v", status, p.refusals())
	}
	server.put(shared, nil, map[string][]byte{keyLines: lines})
	server.remove(name) // the operator's way
	if status := p.post(t, back); status != http.StatusOK {
		t.Errorf("after it was deleted: %d", status)
	}
	if e := last(t, server, n.Origin()); !bytes.Equal(e.Checkpoint, []byte(server.get(name).Data[keyFirst])) {
		t.Error("the log that was let start over is taken for the one before")
	}
}

// earlier is what the release before finds in a log's ConfigMap, by its own rules; an error if it refuses to go on.
func earlier(o *corev1.ConfigMap, origin string) ([]byte, error) {
	if o.Data["checkpoint"] == "" || o.Data["origin"] != origin {
		return nil, ErrMemory
	}
	return []byte(o.Data["checkpoint"]), nil
}

func TestWhatTheReleaseBeforeRemembersGoesOnProtecting(t *testing.T) {
	p, server := onServer(t)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	before := n.Files()
	sends(t, p, n.Grow(9))
	name := ConfigMapName(n.Origin())
	asBefore := func(checkpoint string) { // written by the release before
		server.put(name, map[string]string{"origin": n.Origin(), "checkpoint": checkpoint, "keys": "k\n"}, nil)
	}
	asBefore(server.get(name).Data[keyFirst])
	n.RollBack(before)
	if err := p.client(t).Send(t.Context(), n.Grow(1)); !errors.Is(err, evidence.ErrWitnessAhead) {
		t.Errorf("rolled back behind what the release before cosigned: %v", err)
	}
	if got, err := earlier(server.get(name), n.Origin()); err != nil || got == nil {
		t.Errorf("a refusal has taken it over: %q, %v", got, err)
	}
	n2 := witnesstest.NewNode(t, "win-2")
	p.gives(t, n2)
	name = ConfigMapName(n2.Origin())
	sends(t, p, n2.Grow(3))
	server.put(name, map[string]string{"origin": n2.Origin(), "checkpoint": server.get(name).Data[keyFirst], "keys": "k\n"}, nil)
	sends(t, p, n2.Grow(3)) // it is taken over
	if _, err := earlier(server.get(name), n2.Origin()); !errors.Is(err, ErrMemory) || server.get(name).Data["keys"] != "k\n" {
		t.Errorf("a replica of the release before would cosign another history: %v, %v", err, server.get(name).Data)
	}
	sends(t, p, n2.Grow(3))
	// Rolled back by the book, the release before goes on from the newest checkpoint; upgraded again, this one from the other's.
	server.put(name, map[string]string{"origin": n2.Origin(), "checkpoint": string(last(t, server, n2.Origin()).Checkpoint)}, nil)
	theirs := newPlace(t, nil)
	theirs.key = p.key
	theirs = theirs.replica(t)
	theirs.gives(t, n2)
	from, _ := earlier(server.get(name), n2.Origin())
	theirs.memory.all[n2.Origin()] = Entry{Checkpoint: from}
	kept := n2.Files()
	sends(t, theirs, n2.Grow(20))
	server.put(name, map[string]string{"origin": n2.Origin(), "checkpoint": string(theirs.memory.all[n2.Origin()].Checkpoint)}, nil)
	n2.RollBack(kept)
	if err := p.client(t).Send(t.Context(), n2.Grow(5)); !errors.Is(err, evidence.ErrWitnessAhead) {
		t.Errorf("rolled back behind what the release before cosigned meanwhile: %v", err)
	}
}

func TestWhatIsStoredAndNotAnsweredIsNoContradiction(t *testing.T) {
	p, server := onServer(t)
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	sends(t, p, n.Grow(2))
	sends(t, p, n.Grow(2))
	known := last(t, server, n.Origin())
	client := p.client(t)
	server.before = func(string) error { return errDown }
	if err := client.Send(t.Context(), n.Grow(1)); err == nil {
		t.Error("cosigned, and not stored")
	}
	if e := last(t, server, n.Origin()); !bytes.Equal(e.Checkpoint, known.Checkpoint) {
		t.Error("stored")
	}
	server.before, server.after = nil, func(string) error { return errDown }
	if err := client.Send(t.Context(), n.Grow(1)); err == nil {
		t.Error("cosigned, and it is not known whether it was stored")
	}
	if e := last(t, server, n.Origin()); bytes.Equal(e.Checkpoint, known.Checkpoint) {
		t.Error("not stored")
	}
	server.after = nil
	if err := client.Send(t.Context(), n.Grow(1)); err != nil {
		t.Errorf("the log does not go on: %v", err)
	}
	for why := range p.refusals() {
		if why.isChanged() {
			t.Errorf("an honest log was called %s", why)
		}
	}
}

// A key that the operator gave is not given any more, and the node names it.
func TestAKeyThatIsPinnedLaterLeavesTheCheckpointsThatCount(t *testing.T) {
	server, p := newAPI(), newPlace(t, map[string]string{})
	p.o.Memory = server.memory()
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	sends(t, p, n.Grow(1))
	sends(t, p, n.Grow(1))
	kept := n.Files()
	first := server.get(ConfigMapName(n.Origin())).Data[keyFirst]
	delete(p.given, n.Origin())
	p.reported[n.Origin()] = n.Key.LogKey()
	sends(t, p, n.Grow(5))
	if data := server.get(ConfigMapName(n.Origin())).Data; data[keyPinned] != n.Key.LogKey()+"\n" || data[keyFirst] != first {
		t.Errorf("%q", data)
	}
	if own, shared := server.writes(); own != 2 || shared != 2 {
		t.Errorf("%d writes of its own, %d shared", own, shared)
	}
	n.RollBack(kept)
	if err := p.client(t).Send(t.Context(), n.Grow(1)); !errors.Is(err, evidence.ErrWitnessAhead) {
		t.Errorf("what was cosigned before does not count: %v", err)
	}
}

// What no log has signed waits for no round, and no round waits for it.
func TestStrangersTakeNoPartInRounds(t *testing.T) {
	server, p := newAPI(), newPlace(t, map[string]string{})
	memory := server.memory()
	memory.rounds.every = time.Hour
	p.o.Memory = memory
	n, forged := witnesstest.NewNode(t, "win-1"), witnesstest.NewNode(t, "win-1")
	p.reported[n.Origin()] = n.Key.LogKey()
	sends(t, p, n.Grow(1))
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"another key": {witnesstest.Request(t, 0, forged.Grow(9)), http.StatusForbidden},
		"no log":      {witnesstest.Request(t, 0, witnesstest.NewNode(t, "win-2").Grow(1)), http.StatusNotFound},
		"nothing":     {"", http.StatusBadRequest},
	} {
		if status := p.post(t, c.body); status != c.want { // a round would come in an hour
			t.Errorf("%s: %d, want %d", name, status, c.want)
		}
	}
}

func TestALogWhoseCheckpointIsTooLongIsRefusedAlone(t *testing.T) {
	p, server := onServer(t)
	n := witnesstest.NewNode(t, "win-2")
	p.gives(t, n)
	turn, err := server.memory().Begin(t.Context(), evidence.Origin("win-1"))
	if err != nil {
		t.Fatal(err)
	}
	err = turn.Write(t.Context(), Entry{Checkpoint: bytes.Repeat([]byte("x"), maxLine)})
	if why := (&attempt{err: err}).reasonOf(http.StatusServiceUnavailable); why != reasonOversize || server.get(ConfigMapName(evidence.Origin("win-1"))).Name != "" {
		t.Errorf("called %s, after %v", why, err)
	}
	sends(t, p, n.Grow(1))
	sends(t, p, n.Grow(1))
}
