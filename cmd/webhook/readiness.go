package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

const (
	// canaryInterval is how often a process that is ready proves it again.
	canaryInterval = 10 * time.Second
	// startInterval is how often one that is not ready tries.
	startInterval = 100 * time.Millisecond
)

var errStarting = errors.New("no canary was sent yet")

// readiness knows whether the process enforces: its server answers, a policy is active, and reviews that
// must be refused were refused a moment ago.
type readiness struct {
	reviewer *admission.Reviewer
	serving  func() error
	also     func() error // what else must hold; nil means nothing
	metrics  *canaryMetrics
	log      *zap.Logger
	wake     chan struct{}
	fault    atomic.Pointer[error]
	served   bool          // the server answered once; should it stop, the process ends
	first    chan struct{} // closed when it is ready for the first time
}

func newReadiness(r *admission.Reviewer, serving func() error, m *canaryMetrics, log *zap.Logger) *readiness {
	out := &readiness{reviewer: r, serving: serving, metrics: m, log: log, wake: make(chan struct{}, 1), first: make(chan struct{})}
	out.fault.Store(&errStarting)
	return out
}

// recheck has the canaries sent now.
func (r *readiness) recheck() {
	periodic.Signal(r.wake)
}

// run sends canaries until ctx is done.
func (r *readiness) run(ctx context.Context) error {
	wasReady := false
	for next := time.Duration(0); periodic.Wait(ctx, next, r.wake); {
		err := r.check(ctx)
		switch {
		case err != nil && wasReady:
			r.log.Error("not ready any more", zap.Error(err))
		case err == nil && !wasReady:
			r.log.Info("ready")
		}
		select {
		case <-r.first:
		default:
			if err == nil {
				close(r.first)
			}
		}
		wasReady = err == nil
		next = canaryInterval
		if !wasReady {
			next = startInterval
		}
	}
	return nil
}

func (r *readiness) check(ctx context.Context) error {
	err := r.reviewer.Canary(ctx)
	if !errors.Is(err, admission.ErrNoPolicy) { // then none was sent, as always at the start
		r.metrics.sent(err)
	}
	if err == nil && !r.served {
		err = r.serving()
		r.served = err == nil
	}
	if err == nil && r.also != nil {
		err = r.also()
	}
	r.fault.Store(&err)
	return err
}

// enforces returns what kept the process from enforcing when it was last looked at, nil if nothing did.
func (r *readiness) enforces() error { return *r.fault.Load() }

// ServeHTTP answers /readyz.
func (r *readiness) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if err := r.enforces(); err != nil {
		http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	ok(w, nil)
}

// ok answers /healthz: a process that answers is alive.
func ok(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n")) // whoever asked has gone
}
