package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// Options of a Keeper.
type Options struct {
	// Keys are those whose bundles are taken.
	Keys Keys
	// Audience is the node pool that this node belongs to.
	Audience string
	// MinimumRevision is the oldest revision that is taken. It is for nodes that have seen none, and for those whose
	// directory was lost.
	MinimumRevision uint64
	// Dir keeps the last bundle that was taken and the revisions that were seen. It is made private. An account that can write
	// there can bring back an older bundle, but nothing that was not signed.
	Dir string
	// Prepare compiles and tests a bundle without putting it into force. The function that it returns does that, and cannot fail.
	Prepare func(context.Context, Bundle, Seal) (commit func(), err error)
	// Now is the clock of the node, time.Now if not set.
	Now func() time.Time
	// Log receives diagnostics; none if not set.
	Log *zap.Logger
}

func (o Options) check() error {
	var faults []error
	if len(o.Keys.byID) == 0 {
		faults = append(faults, errors.New("no key is pinned, so no bundle could be verified"))
	}
	if err := CheckAudience(o.Audience); err != nil {
		faults = append(faults, err)
	}
	if o.Dir == "" {
		faults = append(faults, errors.New("no directory: each start would forget the revisions that were seen"))
	}
	if o.Prepare == nil {
		faults = append(faults, errors.New("no function to test a bundle with"))
	}
	return errors.Join(faults...)
}

// Keeper holds the bundle that a node enforces: verified, tested, and stored before it takes effect. Its methods may be called
// by many goroutines.
type Keeper struct {
	o      Options
	disk   disk
	active atomic.Pointer[active]
	pinned atomic.Uint64 // how often keys were pinned anew

	mu      sync.Mutex // one offer at a time; guards the fields below
	seen    state
	refused *Refused // replaced, never changed
}

// active is the bundle in force.
type active struct {
	bundle    Bundle
	seal      Seal
	activated time.Time
	// deadline is ExpiresAt by the monotonic clock, which cannot be set.
	deadline time.Time
	ended    *atomic.Bool
}

// NewKeeper opens the directory, and takes the bundle that is kept there if it may still be used. That it may not is no
// error: Status says why, and until something is offered that may, Valid refuses. An error means that the directory
// cannot be used, or that what was seen cannot be read: then it would not be known which bundles are too old.
func NewKeeper(ctx context.Context, o Options) (*Keeper, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("bundles: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	k := &Keeper{o: o, disk: disk{o.Dir}}
	seen, raw, err := k.disk.load(o.Audience)
	if err != nil {
		return nil, fmt.Errorf("bundles: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = seen
	if raw == nil {
		return k, nil
	}
	if _, err := k.take(ctx, raw, false); err != nil {
		k.refuse(err)
	}
	return k, nil
}

// Offer takes an archive if it is newer than what is there and passes every test. It returns false without an error for
// the bundle that is in force already. An error is a Refusal; the bundle before stays in force until it expires.
func (k *Keeper) Offer(ctx context.Context, raw []byte) (changed bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	changed, err = k.take(ctx, raw, true)
	if err != nil {
		k.refuse(err)
		return false, err
	}
	k.refused = nil
	return changed, nil
}

func (k *Keeper) take(ctx context.Context, raw []byte, store bool) (changed bool, err error) {
	b, seal, err := k.o.Keys.Verify(raw)
	if err != nil {
		return false, err
	}
	now := k.o.Now()
	if err := b.Check(k.o.Audience, now); err != nil {
		return false, err
	}
	if err := k.seen.admits(b, seal, k.o.Keys, k.o.MinimumRevision); err != nil {
		return false, err
	}
	next := k.seen.with(b, seal, k.o.Keys)
	if a := k.active.Load(); a != nil && a.seal.Digest == seal.Digest {
		if !k.seen.has(seal) { // another key has signed the same: its revisions begin here
			if err := k.disk.save(next, raw); err != nil {
				return false, refuse(ReasonStore, err)
			}
			k.seen = next
		}
		return false, nil
	}
	commit, err := k.o.Prepare(ctx, b, seal)
	if err != nil {
		return false, refuse(ReasonTest, err)
	}
	if store {
		// Before it takes effect: a bundle that was in force and forgotten could be followed by an older one.
		if err := k.disk.save(next, raw); err != nil {
			return false, refuse(ReasonStore, err)
		}
	}
	k.seen = next
	commit()
	k.active.Store(&active{b, seal, now, now.Add(b.ExpiresAt.Sub(now)), &atomic.Bool{}})
	k.o.Log.Info("bundle activated", zap.Uint64(logkeys.Revision, b.Revision), zap.Time("expires", b.ExpiresAt))
	return true, nil
}

// Valid returns nil while there is a bundle within its validity period, and else a Refusal: then nothing is
// permitted. It takes a few nanoseconds; ask before each decision.
func (k *Keeper) Valid() error {
	a := k.active.Load()
	if a == nil {
		return errNone
	}
	return a.valid(k.o.Now())
}

var errNone = refuse(ReasonNone, errors.New("there is none that may be used"))

// valid also refuses what ended once: a clock that is set back does not bring it to life.
func (a *active) valid(now time.Time) error {
	if a.ended.Load() || !now.Before(a.bundle.ExpiresAt) || !now.Before(a.deadline) {
		a.ended.Store(true)
		return refuse(ReasonExpired, fmt.Errorf("revision %d ended at %s", a.bundle.Revision, stamp(a.bundle.ExpiresAt)))
	}
	if now.Add(Skew).Before(a.bundle.IssuedAt) {
		return refuse(ReasonNotYet, fmt.Errorf("the clock says %s, and revision %d was issued at %s", stamp(now), a.bundle.Revision, stamp(a.bundle.IssuedAt)))
	}
	return nil
}

// watch is how often Run looks at the clock, which may be set at any time.
const watch = 10 * time.Second

// Run notes on the disk that a bundle has ended, so that it stays so after a restart. It returns when ctx is done.
func (k *Keeper) Run(ctx context.Context) error {
	periodic.Run(ctx, watch, k.noteEnd)
	return nil
}

func (k *Keeper) noteEnd() {
	err := k.Valid()
	a := k.active.Load()
	if a == nil || !a.ended.Load() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	next, changed := k.seen.ended(a.seal.Digest)
	if !changed {
		return
	}
	if err := k.disk.saveState(next); err != nil {
		k.o.Log.Error("the end of a bundle could not be noted", zap.Error(err))
		return // and again with the next tick
	}
	k.seen = next
	k.refuse(err)
}

func (k *Keeper) refuse(err error) {
	reason := ReasonOf(err)
	if k.refused == nil || k.refused.Message != err.Error() {
		k.o.Log.Error("bundle refused", zap.String(logkeys.Reason, string(reason)), zap.Error(err))
	}
	k.refused = &Refused{Reason: reason, Message: err.Error(), At: k.o.Now()}
}

// Status is what a node reports about its bundles.
type Status struct {
	// Revision is that of the bundle that was activated last; 0 if there is none.
	Revision uint64 `json:"revision"`
	// PolicyRevision is what admission calls the same policies.
	PolicyRevision string    `json:"policyRevision,omitempty"`
	Audience       string    `json:"audience"`
	Key            KeyID     `json:"key,omitempty"`
	IssuedAt       time.Time `json:"issuedAt,omitzero"`
	ExpiresAt      time.Time `json:"expiresAt,omitzero"`
	ActivatedAt    time.Time `json:"activatedAt,omitzero"`
	// Oldest is the revision below which bundles are refused, by the keys that are pinned now.
	Oldest uint64 `json:"oldest"`
	// Invalid says why the bundle permits nothing now; empty if it is in force.
	Invalid Reason `json:"invalid,omitempty"`
	// Refused is the last refusal, unless something was taken since.
	Refused *Refused `json:"refused,omitempty"`
}

// Refused is the refusal of a bundle.
type Refused struct {
	Reason  Reason    `json:"reason"`
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// Status returns the current status.
func (k *Keeper) Status() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := Status{Audience: k.o.Audience, Oldest: k.seen.oldest(k.o.Keys, k.o.MinimumRevision), Invalid: ReasonOf(k.Valid()), Refused: k.refused}
	if a := k.active.Load(); a != nil {
		s.Revision, s.PolicyRevision, s.Key = a.bundle.Revision, a.bundle.PolicyRevision, a.seal.Key
		s.IssuedAt, s.ExpiresAt, s.ActivatedAt = a.bundle.IssuedAt, a.bundle.ExpiresAt, a.activated
	}
	return s
}
