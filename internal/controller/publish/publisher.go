package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/controller/configmaps"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// Options of a Publisher.
type Options struct {
	// Store keeps the bundles.
	Store Store
	// Key returns the key that signs them. It is called at each attempt, because the key may be rotated.
	Key func() (*bundle.Key, error)
	// Pools are the pools of nodes, at least one.
	Pools []string
	// Life is how long nodes may decide by a bundle without hearing of another, 7 days if not set. It is renewed at half
	// of it, so that a cluster whose controller is away for that long still has nodes that work.
	Life time.Duration
	// MinimumRevision is the oldest revision that nodes may still take once they have a bundle of this Publisher.
	MinimumRevision uint64
	// Source returns the content of the bundles, as package compile makes it.
	Source func(context.Context) (bundle.Bundle, error)
	// Unread names the nodes that cannot read what was published for their pool, in order. It may be nil.
	Unread func(context.Context, Result) ([]string, error)
	// Tell is called with the result of each pool, after each attempt. It may be nil.
	Tell func([]Result)
	// Now is time.Now if not set.
	Now func() time.Time
	// Log receives diagnostics; none if not set.
	Log *zap.Logger
}

const (
	defaultLife = 7 * 24 * time.Hour
	// look is how often the store is compared with the content without a reason: it may have been changed by hand.
	look = time.Minute
	// quiet is how long nothing must change before an attempt: kubectl apply writes one object after the other.
	quiet = time.Second
	// tries bounds the attempts to write an object that others write to at the same time.
	tries = 5
)

// Publisher keeps the bundles of all pools on the cluster's policies. It runs on the leader.
type Publisher struct {
	o       Options
	changed chan struct{}
	// newest is the revision that each pool had last. An older bundle of ours can be put back, which nodes refuse.
	newest map[string]uint64 // of Start's goroutine
	// said is what was last logged of the nodes of each pool that cannot read its bundle.
	said map[string]string // of Start's goroutine

	results atomic.Pointer[[]Result]
}

// New returns a Publisher, or every fault of the options.
func New(o Options) (*Publisher, error) {
	var faults []error
	if o.Store == nil || o.Key == nil || o.Source == nil {
		faults = append(faults, errors.New("a store, a key and a source are needed"))
	}
	faults = append(faults, CheckPools(o.Pools, o.Life)...)
	o.Life = cmp.Or(o.Life, defaultLife)
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("publish bundles: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	if o.Unread == nil {
		o.Unread = func(context.Context, Result) ([]string, error) { return nil, nil }
	}
	if o.Tell == nil {
		o.Tell = func([]Result) {}
	}
	return &Publisher{o: o, changed: make(chan struct{}, 1), newest: map[string]uint64{}, said: map[string]string{}}, nil
}

// CheckPools reports every fault of the names of pools, and of the life of their bundles, 0 for the default.
func CheckPools(pools []string, life time.Duration) (faults []error) {
	if len(pools) == 0 {
		faults = append(faults, errors.New("at least one node pool is needed"))
	}
	for i, pool := range pools {
		if err := bundle.CheckAudience(pool); err != nil {
			faults = append(faults, err)
		}
		if slices.Contains(pools[:i], pool) {
			faults = append(faults, fmt.Errorf("node pool %q twice", pool))
		}
	}
	if life != 0 && (life < 10*time.Minute || life%time.Second != 0 || life > bundle.MaxLife) {
		faults = append(faults, fmt.Errorf("life of %v: want whole seconds, 10m to %v", life, bundle.MaxLife))
	}
	return faults
}

// Changed says that Source would return something else than before. It does not wait.
func (p *Publisher) Changed() { periodic.Signal(p.changed) }

// Start publishes at once, after each change, and as often as lives must be renewed, until ctx is done. It can be called again after that.
func (p *Publisher) Start(ctx context.Context) error {
	defer p.results.Store(nil) // in a later term, these are not the results of the bundles that are published then
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		p.publish(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-p.changed:
			if !periodic.Sleep(ctx, quiet) {
				return nil
			}
		}
	}
}

// Results returns the results of all pools at the last attempt.
func (p *Publisher) Results() []Result {
	if results := p.results.Load(); results != nil {
		return slices.Clone(*results)
	}
	return nil
}

func (p *Publisher) publish(ctx context.Context) {
	content, err := p.o.Source(ctx)
	reason := ReasonUnfit
	var key *bundle.Key
	if err == nil {
		reason = ReasonKey
		key, err = p.o.Key()
	}
	results := make([]Result, 0, len(p.o.Pools))
	for _, pool := range p.o.Pools {
		r := Result{Pool: pool, Reason: reason, Err: err}
		if err == nil {
			r = p.pool(ctx, key, pool, content)
		}
		if r.Err == nil {
			r = p.readers(ctx, r, content)
		}
		if ctx.Err() != nil {
			return // what was cut off did not fail
		}
		switch {
		case r.Err != nil:
			p.o.Log.Error("bundle not published; nodes go on with the one before until it ends", zap.String(logkeys.Name, pool), zap.String(logkeys.Reason, string(r.Reason)), zap.Error(r.Err))
		case r.Written:
			p.o.Log.Info("bundle published", zap.String(logkeys.Name, pool), zap.Uint64(logkeys.Revision, r.Revision))
		}
		results = append(results, r)
	}
	p.results.Store(&results)
	p.o.Tell(slices.Clone(results))
}

// readers completes a result with the nodes that cannot read the bundle. It holds nothing back: a node can report anything,
// and one must not keep the policies from all others.
func (p *Publisher) readers(ctx context.Context, r Result, content bundle.Bundle) Result {
	r.Schemas = []string{bundle.Schema, access.SchemaOf(content.ACL)}
	if r.Unread, r.Unknown = p.o.Unread(ctx, r); len(r.Unread) > 0 {
		r.Reason = ReasonUnreadable
	}
	note := r.unread()
	if note != "" && note != p.said[r.Pool] {
		p.o.Log.Warn("bundle published that not all nodes are known to read", zap.String(logkeys.Name, r.Pool), zap.String(logkeys.Note, note))
	}
	p.said[r.Pool] = note
	return r
}

// pool brings one pool up to date.
func (p *Publisher) pool(ctx context.Context, key *bundle.Key, pool string, content bundle.Bundle) Result {
	content.Audience, content.MinimumRevision = pool, p.o.MinimumRevision
	var r Result
	for range tries {
		if r = p.once(ctx, key, pool, content); !errors.Is(r.Err, configmaps.ErrChanged) {
			return r
		}
	}
	r.Reason = ReasonConflict
	return r
}

func (p *Publisher) once(ctx context.Context, key *bundle.Key, pool string, content bundle.Bundle) Result {
	stored, err := p.o.Store.Get(ctx, pool)
	if err != nil {
		return Result{Pool: pool, Reason: ReasonStore, Err: fmt.Errorf("read the bundle of pool %s: %w", pool, err)}
	}
	now := p.o.Now().UTC().Truncate(time.Second)
	before, ours := previous(stored.Raw, key, pool, now)
	if ours && before.Revision >= p.newest[pool] && bundle.SameContent(before, content) && p.isFresh(before, now) {
		p.newest[pool] = before.Revision
		return Result{Pool: pool, Revision: before.Revision, PolicyRevision: before.PolicyRevision, ExpiresAt: before.ExpiresAt, Reason: ReasonPublished}
	}
	content.IssuedAt, content.ExpiresAt = now, now.Add(p.o.Life)
	// Seconds since 1970, so that a ConfigMap that was deleted does not make revisions begin anew, which nodes would refuse.
	seconds := uint64(max(1, now.Unix())) //nolint:gosec // positive
	content.Revision = max(before.Revision+1, p.newest[pool]+1, seconds)
	if content.Revision > bundle.LatestRevision(now) {
		content.Revision = seconds // a clock was far ahead; no node takes what would follow
	}
	raw, err := bundle.Build(content, key)
	if err != nil {
		return failed(pool, err)
	}
	if err := p.o.Store.Put(ctx, pool, Stored{Raw: raw, Revision: content.Revision, Version: stored.Version}); err != nil {
		return Result{Pool: pool, Reason: ReasonStore, Err: fmt.Errorf("write the bundle of pool %s: %w", pool, err)}
	}
	p.newest[pool] = content.Revision
	return Result{Pool: pool, Revision: content.Revision, PolicyRevision: content.PolicyRevision, ExpiresAt: content.ExpiresAt, Written: true, Reason: ReasonPublished}
}

// isFresh reports whether a bundle has the life that the options ask for, with more than half of it left.
func (p *Publisher) isFresh(b bundle.Bundle, now time.Time) bool {
	return b.ExpiresAt.Sub(b.IssuedAt) == p.o.Life && b.ExpiresAt.Sub(now) > p.o.Life/2 && !b.IssuedAt.After(now.Add(bundle.Skew))
}

// ahead bounds a revision that the key in use has not signed: after a change of keys it counts, and
// an account that may write ConfigMaps must not be able to use up all revisions there are.
const ahead = 24 * time.Hour

// previous is the bundle that is stored, and whether it was signed with the key in use for this pool.
func previous(raw []byte, key *bundle.Key, pool string, now time.Time) (b bundle.Bundle, ours bool) {
	if len(raw) == 0 {
		return bundle.Bundle{}, false
	}
	pinned, err := bundle.ParseKeys(key.PublicPEM())
	if err == nil {
		if b, _, err := pinned.Verify(raw); err == nil && b.Audience == pool {
			return b, true
		}
	}
	b, _, err = bundle.Inspect(raw)
	if err != nil || b.Revision > uint64(max(1, now.Add(ahead).Unix())) { //nolint:gosec // positive
		return bundle.Bundle{}, false
	}
	return bundle.Bundle{Revision: b.Revision}, false
}
