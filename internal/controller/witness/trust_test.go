package witness

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/test/audit/witnesstest"
)

func TestTheFirstKeyIsPinnedWithTheFirstCheckpointItSigned(t *testing.T) {
	p := newPlace(t, map[string]string{})
	n := witnesstest.NewNode(t, "win-1")
	if err := p.client(t).Send(t.Context(), n.Grow(2)); err == nil || p.refusals()[reasonUnknown] != 1 {
		t.Errorf("a node that has not reported: %v, %v", err, p.refusals())
	}
	p.reported[n.Origin()] = n.Key.LogKey()
	forged := witnesstest.NewNode(t, "win-1")
	if err := p.client(t).Send(t.Context(), forged.Grow(2)); err == nil || p.refusals()[reasonKey] != 1 {
		t.Errorf("another key than the node's, at first: %v, %v", err, p.refusals())
	}
	if len(p.memory.all) != 0 {
		t.Errorf("pinned without a checkpoint: %v", p.memory.all)
	}
	if err := p.client(t).Send(t.Context(), n.Grow(2)); err != nil {
		t.Fatal(err)
	}
	if got := p.memory.all[n.Origin()].Pinned; got != n.Key.LogKey()+"\n" {
		t.Errorf("pinned %q", got)
	}
	delete(p.reported, n.Origin()) // a report that has gone takes nothing away
	if err := p.replica(t).client(t).Send(t.Context(), n.Grow(2)); err != nil {
		t.Errorf("another replica: %v", err)
	}
	if got := p.memory.all[n.Origin()].Pinned; got != n.Key.LogKey()+"\n" {
		t.Errorf("later, pinned is %q", got)
	}
}

func TestALaterKeyIsRefusedUntilThePinIsChanged(t *testing.T) {
	p := newPlace(t, map[string]string{})
	n, next := witnesstest.NewNode(t, "win-1"), witnesstest.NewNode(t, "win-1")
	p.reported[n.Origin()] = n.Key.LogKey()
	if err := p.client(t).Send(t.Context(), n.Grow(2)); err != nil {
		t.Fatal(err)
	}
	if err := p.client(t).Send(t.Context(), next.Grow(9)); err == nil || p.refusals()[reasonKey] != 1 {
		t.Errorf("a key that nobody names: %v, %v", err, p.refusals())
	}
	p.reported[n.Origin()] = next.Key.LogKey()
	before := p.memory.all[n.Origin()]
	if err := p.client(t).Send(t.Context(), next.Grow(9)); err == nil || p.refusals()[reasonPin] != 1 {
		t.Errorf("the key that the node names now: %v, %v", err, p.refusals())
	}
	if diff := cmp.Diff(before, p.memory.all[n.Origin()]); diff != "" {
		t.Errorf("something was stored:\n%s", diff)
	}
	if len(p.events.said) != 1 || !strings.Contains(p.events.said[0], "AuditKeyChanged") || !strings.Contains(p.events.said[0], ConfigMapName(n.Origin())) {
		t.Errorf("%q", p.events.said)
	}
	if err := p.client(t).Send(t.Context(), n.Grow(2)); err != nil {
		t.Errorf("the pinned one goes on: %v", err)
	}
	e := p.memory.all[n.Origin()] // the operator adds the new key
	e.Pinned += next.Key.LogKey() + "\n"
	p.memory.all[n.Origin()] = e
	if err := p.client(t).Send(t.Context(), next.Grow(1)); !errors.Is(err, evidence.ErrWitnessRefuses) {
		t.Errorf("a new key is no reason to begin another log: %v", err)
	}
	delete(p.memory.all, n.Origin()) // the operator lets the log begin anew
	if err := p.client(t).Send(t.Context(), next.Grow(1)); err != nil {
		t.Errorf("after the operator has removed it all: %v", err)
	}
}

func TestOfTwoReplicasThatPinDifferentKeysOneWins(t *testing.T) {
	p := newPlace(t, map[string]string{})
	n, other := witnesstest.NewNode(t, "win-1"), witnesstest.NewNode(t, "win-1")
	p.reported[n.Origin()] = n.Key.LogKey()
	rival := newPlace(t, map[string]string{n.Origin(): other.Key.LogKey()})
	rival.memory = p.memory
	rival = rival.replica(t)
	theirs := other.Grow(5)
	p.memory.between = func(string) { // after the keys were asked for, and before anything is written
		p.memory.between = nil
		if err := rival.client(t).Send(t.Context(), theirs); err != nil {
			t.Error(err)
		}
	}
	if err := p.client(t).Send(t.Context(), n.Grow(9)); err == nil {
		t.Error("both were pinned")
	}
	e := p.memory.all[n.Origin()]
	if _, err := keysOf(t, e.Pinned).Open(e.Checkpoint); err != nil || !strings.Contains(e.Pinned, other.Key.LogKey()) || p.memory.writes != 1 {
		t.Errorf("a checkpoint stands beside the key of another: %v %q", err, e.Pinned)
	}
}

func TestAPinThatAnOperatorMakesMeanwhileCounts(t *testing.T) {
	p := newPlace(t, map[string]string{})
	n, other := witnesstest.NewNode(t, "win-1"), witnesstest.NewNode(t, "win-1")
	p.reported[n.Origin()] = n.Key.LogKey()
	first := n.Grow(2)
	if status := p.post(t, witnesstest.Request(t, 0, first)); status != http.StatusOK {
		t.Fatalf("%d", status)
	}
	p.memory.between = func(origin string) { // after the keys were asked for, and before anything is written
		p.memory.between = nil
		e := p.memory.all[origin]
		e.Pinned = other.Key.LogKey()
		p.memory.all[origin] = e
	}
	if status := p.post(t, witnesstest.Request(t, first.Size, n.Grow(2))); status != http.StatusServiceUnavailable || p.memory.writes != 1 {
		t.Errorf("%d, and %d were stored", status, p.memory.writes)
	}
	if status := p.post(t, witnesstest.Request(t, first.Size, n.Grow(2))); status != http.StatusForbidden {
		t.Errorf("later: %d", status)
	}
}

func TestWhatTheOperatorGivesGoesBeforePins(t *testing.T) {
	p := newPlace(t, map[string]string{})
	n, next := witnesstest.NewNode(t, "win-1"), witnesstest.NewNode(t, "win-1")
	p.reported[n.Origin()] = n.Key.LogKey()
	if err := p.client(t).Send(t.Context(), n.Grow(2)); err != nil {
		t.Fatal(err)
	}
	p.gives(t, next)
	if err := p.client(t).Send(t.Context(), n.Grow(2)); err == nil || p.refusals()[reasonKey] != 1 {
		t.Errorf("pinned, and not the operator's: %v, %v", err, p.refusals())
	}
	strict := newPlace(t, nil)
	strict.memory = p.memory
	if err := strict.replica(t).client(t).Send(t.Context(), n.Grow(2)); err == nil {
		t.Error("a pin counts where pins do not count any more")
	}
}

func TestNoLogButANodesIsPinned(t *testing.T) {
	p := newPlace(t, map[string]string{})
	for _, origin := range []string{"example.com/log", evidence.OriginPrefix, evidence.OriginPrefix + "../secrets", evidence.OriginPrefix + "WIN-1", evidence.OriginPrefix + strings.Repeat("x", 254)} {
		n := witnesstest.NewNode(t, "win-1")
		n.Close()
		key := witnesstest.NewKey(t, origin)
		p.reported[origin] = key.LogKey()
		a := &attempt{h: p.Handler}
		if keys, err := a.keys(t.Context(), origin); err != nil || some(keys) {
			t.Errorf("%q: %v, %v", origin, keys.Describe(), err)
		}
	}
}

func TestAPinThatCannotBeReadIsNoAnswer(t *testing.T) {
	p := newPlace(t, map[string]string{})
	n := witnesstest.NewNode(t, "win-1")
	p.reported[n.Origin()] = n.Key.LogKey()
	for _, text := range []string{"x", "# none", string(n.Key.Secret())} {
		p.memory.all[n.Origin()] = Entry{Pinned: text}
		if status := p.post(t, witnesstest.Request(t, 0, n.Grow(1))); status != http.StatusServiceUnavailable {
			t.Errorf("%q: status %d", text, status)
		}
	}
	for _, line := range p.logs.All() {
		if strings.Contains(line.ContextMap()["error"].(string), "PRIVATE") {
			t.Errorf("a key is in the log: %v", line)
		}
	}
}

// cluster is a client.Reader that knows GuardedNodes and Nodes.
type cluster struct {
	client.Reader
	reports map[string]string
	nodes   map[string]bool
	fault   error
}

func (c *cluster) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	missing := apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	switch o := into.(type) {
	case *v1alpha1.GuardedNode:
		text, ok := c.reports[key.Name]
		if !ok {
			return missing
		}
		o.AuditKey = text
		return nil
	case *metav1.PartialObjectMetadata:
		if c.fault != nil {
			return c.fault
		}
		if !c.nodes[key.Name] {
			return missing
		}
		return nil
	}
	return errors.New("another kind")
}

func TestANodesWordCountsForItsOwnLogAndWhileItExists(t *testing.T) {
	own, two := witnesstest.NewKey(t, evidence.Origin("win-1")), witnesstest.NewKey(t, evidence.Origin("win-1"))
	other := witnesstest.NewKey(t, evidence.Origin("win-2"))
	for name, c := range map[string]struct {
		report string
		want   string
	}{
		"its own key":           {own.LogKey(), own.LogKey()},
		"with a line behind it": {own.LogKey() + "\n", own.LogKey()},
		"none":                  {"", ""},
		"another node's":        {other.LogKey(), ""},
		"two":                   {own.LogKey() + "\n" + two.LogKey(), ""},
		"a witness's":           {own.WitnessKey(), ""},
		"a private key":         {string(own.Secret()), ""},
		"half of one":           {own.LogKey()[:40], ""},
	} {
		r := Reported{&cluster{reports: map[string]string{"win-1": c.report}, nodes: map[string]bool{"win-1": true}}}
		if got, err := r.Key(t.Context(), own.Name()); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	gone := Reported{&cluster{reports: map[string]string{"win-1": own.LogKey()}}}
	if got, err := gone.Key(t.Context(), own.Name()); err != nil || got != "" {
		t.Errorf("a Node that is gone: %q, %v", got, err)
	}
	silent := Reported{&cluster{nodes: map[string]bool{"win-1": true}}}
	if got, err := silent.Key(t.Context(), own.Name()); err != nil || got != "" {
		t.Errorf("a Node that has not reported: %q, %v", got, err)
	}
	down := Reported{&cluster{reports: map[string]string{"win-1": own.LogKey()}, fault: errDown}}
	if _, err := down.Key(t.Context(), own.Name()); !errors.Is(err, errDown) {
		t.Errorf("not known is not absent: %v", err)
	}
}
