package witness

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/controller/configmaps"
)

// ErrMemory means that what is remembered of a log is not what a witness has written.
var ErrMemory = errors.New("it does not hold what a witness writes")

// Memory keeps an Entry for each log.
type Memory interface {
	// Pinned returns the verifier keys that were pinned for a log, one a line; "" if none were.
	Pinned(ctx context.Context, origin string) (string, error)
	// Begin returns what is remembered of a log: never less than a Write that ended before has left. The caller ends the Turn, soon.
	Begin(ctx context.Context, origin string) (Turn, error)
}

// Turn is the time between reading what is remembered of a log and replacing it. It is used by one goroutine.
type Turn interface {
	// Entry is what is remembered, the zero Entry if nothing.
	Entry() Entry
	// Write replaces the Entry and ends the Turn. It returns once the new one is stored, and evidence.ErrChanged if what is remembered has
	// changed since Begin. After any other error it is not known whether it was stored.
	Write(ctx context.Context, e Entry) error
	// End says that nothing is written. After Write, and the second time, it does nothing.
	End()
}

// Entry is what is remembered of a log.
type Entry struct {
	// Checkpoint is the one that was cosigned last, nil if nothing is remembered.
	Checkpoint []byte
	// Pinned are verifier keys of the log, one a line; empty if none were pinned.
	Pinned string
}

// ConfigMaps is the Memory of a cluster. It reads past every cache.
//
// A log has a ConfigMap of its own, which is written with its first checkpoint: it says that the log is known, and which keys are pinned. The
// checkpoints after that one are kept together with those of other logs, in few ConfigMaps, and stored in rounds. A later checkpoint counts only
// beside the very checkpoint in the log's own ConfigMap that it came after: deleting that ConfigMap lets the log start over.
type ConfigMaps struct {
	store  configmaps.Store
	rounds *rounds
}

var _ Memory = (*ConfigMaps)(nil)

// NewConfigMaps makes connections, but does not use them yet.
func NewConfigMaps(config *rest.Config, namespace string) (*ConfigMaps, error) {
	s, err := configmaps.New(config, namespace, "pipeguard-witness", "witness")
	if err != nil {
		return nil, fmt.Errorf("memory of the witness: %w", err)
	}
	return newConfigMaps(s), nil
}

func newConfigMaps(s configmaps.Store) *ConfigMaps {
	return &ConfigMaps{s, newRounds(s)}
}

// Pinned implements Memory.
func (c *ConfigMaps) Pinned(ctx context.Context, origin string) (string, error) {
	own, err := readOwn(ctx, c.store, origin)
	return own.pinned, err
}

// Begin implements Memory. The log's own ConfigMap is read after the one that it shares: what was stored for a log that has started over since
// is then found by the round, which reads again before it replaces anything.
func (c *ConfigMaps) Begin(ctx context.Context, origin string) (Turn, error) {
	m, err := c.rounds.join(ctx, origin)
	if err != nil {
		return nil, err
	}
	own, err := readOwn(ctx, c.store, origin)
	if err != nil {
		m.leave()
		return nil, err
	}
	return &turn{c, m, own}, nil
}

// turn is the Turn of a cluster's memory.
type turn struct {
	c   *ConfigMaps
	m   *member
	own own
}

// Entry implements Turn.
func (t *turn) Entry() Entry {
	e := Entry{Checkpoint: t.own.checkpoint, Pinned: t.own.pinned}
	if t.own.isShared && t.m.before.follows(t.own) {
		e.Checkpoint = []byte(t.m.before.Checkpoint)
	}
	return e
}

// End implements Turn.
func (t *turn) End() { t.m.leave() }

// Write implements Turn.
func (t *turn) Write(ctx context.Context, e Entry) error {
	defer t.m.leave()
	next, err := newLine(t.m.origin, t.own, e.Checkpoint)
	if err != nil {
		return err
	}
	if !t.own.isShared {
		t.m.leave() // no other log waits for this
		return changed(t.own.write(ctx, t.c.store, t.m.origin, e))
	}
	if e.Pinned != t.own.pinned { // the checkpoint there stays, and so do those that came after it
		if err := t.own.write(ctx, t.c.store, t.m.origin, Entry{t.own.checkpoint, e.Pinned}); err != nil {
			return changed(err)
		}
	}
	return t.m.write(ctx, next)
}

// changed says in evidence's word that another replica was faster.
func changed(err error) error {
	if errors.Is(err, configmaps.ErrChanged) {
		return evidence.ErrChanged
	}
	return err
}
