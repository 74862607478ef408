package token

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync/atomic"
	"time"
)

// Verifier verifies tokens. It serves all pipes, and may be used by many goroutines.
type Verifier struct {
	config  Config
	rules   rules
	metrics Metrics
	keys    atomic.Pointer[keys] // nil with the method review
	api     *client              // nil without an API server
	tokens  *memo[verified]
	access  *memo[struct{}]
	now     func() time.Time
}

// verified is what was found out about a token. It holds no part of it but the names.
type verified struct {
	id  string
	who Identity
}

// New reads the files that the configuration names, and returns every fault of it. It sends no request.
func New(c Config, m Metrics) (*Verifier, error) {
	c, err := c.complete()
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	v := &Verifier{
		config: c, metrics: m, now: time.Now,
		rules:  rules{issuer: c.Issuer, audience: c.Audience, node: c.Node, leeway: c.Leeway, maxLifetime: c.MaxLifetime},
		tokens: newMemo[verified](c, c.Method == ByReview), access: newMemo[struct{}](c, true),
	}
	if c.Method == ByKeys {
		k, err := loadKeys(c.Keys)
		if err != nil {
			return nil, fmt.Errorf("tokens: keys: %w", err)
		}
		v.keys.Store(k)
	}
	if c.API.IsSet() {
		if v.api, err = newClient(c.API, c.Timeout); err != nil {
			return nil, fmt.Errorf("tokens: %w", err)
		}
	}
	return v, nil
}

// verify finds out about a token of a caller whose pod and process are known.
func (v *Verifier) verify(ctx context.Context, text Secret, caller Facts) (Identity, Result, *Refusal) {
	basis := v.keys.Load()
	k := key{token: sha256.Sum256([]byte(text)), facts: caller.key()}
	if basis != nil {
		k.basis = basis.sum
	}
	if a, ok := v.tokens.fresh(k); ok {
		return a.value.who, Result{Present: true, Method: v.config.Method, ID: a.value.id, Cached: true, Checked: a.checked}, nil
	}
	t, refusal := parse(text)
	if refusal == nil {
		refusal = v.rules.check(&t.claims, v.now())
	}
	if refusal == nil {
		refusal = t.claims.identity().binds(caller) // before the question: it is cheap, and ends every replay
	}
	if refusal != nil {
		return Identity{}, Result{Present: true}, refusal
	}
	who := t.claims.identity()
	f, refusal := v.tokens.find(ctx, question[verified]{
		key: k, asker: caller.asker(), expires: who.Expires, alive: caller.Alive,
		ask: func(ctx context.Context) (verified, *Refusal) {
			return verified{id: t.claims.id(), who: who}, v.prove(ctx, t, text, basis, who)
		},
	})
	result := Result{Present: true, Method: v.config.Method, Cached: f.cached, Stale: f.stale, Checked: f.checked}
	if refusal != nil {
		return Identity{}, result, refusal
	}
	result.ID = f.value.id
	return f.value.who, result, nil
}

// prove has the token's origin confirmed.
func (v *Verifier) prove(ctx context.Context, t *jws, text Secret, basis *keys, who Identity) *Refusal {
	if v.config.Method == ByKeys {
		if basis == nil {
			return refuse(Unconfigured, "there are no keys to verify it with")
		}
		return basis.verify(t)
	}
	if v.api == nil {
		return refuse(Unconfigured, "there is no API server to review it")
	}
	began := time.Now()
	r := v.api.review(ctx, text, v.config.Audience, who)
	v.metrics.asked(tokenReviewKind, r, time.Since(began))
	return r
}
