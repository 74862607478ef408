package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
	"github.com/pipeguard/pipeguard/internal/policy"
)

const (
	// quiet is how long nothing must change before an attempt: kubectl apply writes one object after the other.
	quiet = 200 * time.Millisecond
	// patience bounds how long objects that never rest can put off their own activation.
	patience = 2 * time.Second
	// retryAttempt is how long the replica waits before it repeats an attempt that failed for want of time or of a file.
	retryAttempt = 10 * time.Second
)

// engine is what the Activator uses of *policy.Engine.
type engine interface {
	Activate(context.Context, policy.Modules) (policy.Snapshot, error)
	Active() (policy.Snapshot, bool)
}

// Activator keeps the engine of one replica on the cluster's policies. What is unfit is refused as a whole, and what was active
// before goes on deciding. It runs on every replica; what it knows is in its Outcome.
type Activator struct {
	outcomes
	objects   objects
	engine    engine
	base      func() (policy.Modules, admission.Parameters, error)
	assemble  assembler
	attempted func(policy.Snapshot, error)
	log       *zap.Logger
	now       func() time.Time

	changed   chan struct{}
	activated atomic.Pointer[Activated]

	before Outcome // the attempt before; its Err says whether it is repeated
	tried  bool    // there was one
	good   attempt // that decides
}

func newActivator(o Options, from objects) *Activator {
	return &Activator{
		objects: from, engine: o.Engine, base: o.Base, assemble: o.Assemble, attempted: o.Attempted,
		log: o.Log, now: o.Now, changed: make(chan struct{}, 1),
	}
}

// Changed says that Options.Base would return something else than before. It does not wait.
func (a *Activator) Changed() { periodic.Signal(a.changed) }

// Start activates what the cluster holds, at once and after each change, until ctx is done. The first attempt waits for
// the cache: policies without the cluster's objects could permit what these forbid.
func (a *Activator) Start(ctx context.Context) error {
	if err := a.objects.watch(ctx, a.Changed); err != nil {
		return unlessDone(ctx, err)
	}
	for {
		a.attempt(ctx)
		if !a.wait(ctx) {
			return nil
		}
	}
}

// unlessDone is an error, or nil if the process is ending: what was cut off did not fail.
func unlessDone(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// wait returns when there is a reason for the next attempt, and false when ctx is done.
func (a *Activator) wait(ctx context.Context) bool {
	var again <-chan time.Time
	if passing(a.before.Err) {
		timer := time.NewTimer(retryAttempt)
		defer timer.Stop()
		again = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-again:
		return true
	case <-a.changed:
		return a.settle(ctx)
	}
}

// settle waits until nothing changed for a while, or for as long as it may. It returns false when ctx is done.
func (a *Activator) settle(ctx context.Context) bool {
	enough := time.NewTimer(patience)
	defer enough.Stop()
	calm := time.NewTimer(quiet)
	defer calm.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-enough.C:
			return true
		case <-calm.C:
			return true
		case <-a.changed:
			calm.Reset(quiet)
		}
	}
}

// attempt activates what there is now, unless the attempt before was about the same.
func (a *Activator) attempt(ctx context.Context) {
	next, about, err := a.gather(ctx)
	if err == nil && a.tried && about == a.before.Attempted && !passing(a.before.Err) {
		a.keep(next.generations())
		return
	}
	var s policy.Snapshot
	if err == nil {
		if s, err = a.activate(ctx, next); err != nil {
			a.withdraw(ctx, next)
		}
	}
	if ctx.Err() != nil {
		return // an activation that was cut off says nothing about the policies
	}
	a.conclude(next, about, s, err)
}

// gather reads everything. On error the hash is that of the error, so that an error that stays the same is told once.
func (a *Activator) gather(ctx context.Context) (next attempt, about string, err error) {
	if next.policyObjects, err = a.objects.list(ctx); err == nil {
		if next.base, next.params, err = a.base(); err != nil {
			err = fmt.Errorf("read base policies: %w", err)
		}
	}
	if err == nil {
		about, err = next.hash()
	}
	if err != nil {
		err = &unreadError{err}
		about = shortHash([]byte(err.Error()))
	}
	return next, about, err
}

// withdraw takes the permissions back, when next is refused, of PipePolicies that decide by content that they never had: it was told of under the
// generation that they have now, without fields of a definition that the API server did not yet serve. They are no last good ones to go on with,
// but they go on governing their pipes: without them, the weaker rules for pipes without a policy would count.
func (a *Activator) withdraw(ctx context.Context, next attempt) {
	never := func(p *v1alpha1.PipePolicy) bool {
		return slices.ContainsFunc(next.pipes, func(now v1alpha1.PipePolicy) bool {
			return keyOf(kindPipePolicy, &now) == keyOf(kindPipePolicy, p) && now.Generation == p.Generation && !sameSpec(&now, p)
		})
	}
	rest, isNew := a.good, false
	rest.pipes = slices.Clone(rest.pipes)
	active := rest.generations()
	for i := range rest.pipes {
		if p := &rest.pipes[i]; never(p) {
			delete(active, keyOf(kindPipePolicy, p))
			before := *p
			*p = *p.DeepCopy()
			p.Spec.Subjects = nil
			p.Spec.Admission = v1alpha1.AdmissionRules{Action: v1alpha1.ActionDeny, Requirement: v1alpha1.RequireSubject}
			p.Spec.Node.Action = v1alpha1.NodeEnforce
			isNew = isNew || !sameSpec(&before, p)
		}
	}
	if !isNew {
		return
	}
	s, err := a.activate(ctx, rest)
	about, unhashed := rest.hash()
	if err = errors.Join(err, unhashed); err != nil {
		if ctx.Err() == nil {
			a.log.Error("policies that were read without their new fields cannot be taken back, and go on deciding", zap.Error(err))
		}
		return
	}
	a.before.Active, a.before.ActiveAttempt = active, about
	a.took(about, s, rest)
	a.log.Warn("policies that were read without their new fields permit nothing now", zap.String(logkeys.Attempt, about), zap.String(logkeys.Revision, s.Revision()))
}

// took notes what decides.
func (a *Activator) took(about string, s policy.Snapshot, from attempt) {
	a.good = from
	a.activated.Store(&Activated{about, s.Revision(), from.pipes, from.params})
}

func (a *Activator) activate(ctx context.Context, next attempt) (policy.Snapshot, error) {
	modules, err := a.assemble(next.base, next.params, next.pipes, next.modules)
	if err != nil {
		return policy.Snapshot{}, err
	}
	return a.engine.Activate(ctx, modules)
}

// conclude tells what came of an attempt, unless it is the repetition of one that failed in the same way.
func (a *Activator) conclude(next attempt, about string, s policy.Snapshot, err error) {
	outcome := Outcome{Attempted: about, Err: err, Generations: next.generations(), Active: a.before.Active, ActiveAttempt: a.before.ActiveAttempt, At: a.now()}
	if err == nil {
		outcome.Active, outcome.ActiveAttempt = outcome.Generations, about
		a.took(about, s, next)
	}
	if active, ok := a.engine.Active(); ok {
		outcome.Revision = active.Revision()
	}
	repeated := a.tried && err != nil && a.before.Err != nil && about == a.before.Attempted && err.Error() == a.before.Err.Error()
	if repeated {
		a.keep(outcome.Generations)
		return
	}
	a.before, a.tried = outcome, true
	fields := []zap.Field{
		zap.String(logkeys.Attempt, about), zap.String(logkeys.Revision, outcome.Revision),
		zap.Int(logkeys.PipePolicies, len(next.pipes)), zap.Int(logkeys.PolicyModules, len(next.modules)),
	}
	switch {
	case err == nil:
		a.log.Info("policies of the cluster taken over", fields...)
	case outcome.Revision != "":
		a.log.Error("policies of the cluster refused, the ones before go on deciding", append(fields, zap.Error(err))...)
	default:
		a.log.Error("policies of the cluster refused, and there are none before: everything that matters is denied", append(fields, zap.Error(err))...)
	}
	a.attempted(s, err)
	a.publish(outcome)
}

// keep notes that the attempt before was also about these generations: an object can be changed and changed back.
func (a *Activator) keep(generations map[ObjectKey]int64) {
	if maps.Equal(generations, a.before.Generations) {
		return
	}
	a.before.Generations = generations
	if a.before.Err == nil {
		a.before.Active = generations
	}
	a.before.At = a.now()
	a.publish(a.before)
}
