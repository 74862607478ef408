package policy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/turns"
)

// Engine decides with the policies that were activated last. Its methods may be called by many at once.
type Engine struct {
	options  Options
	slots    *turns.Turns
	activate sync.Mutex    // one activation at a time, so that the later call wins; guards tested
	tested   tested        // the base that passed its tests last
	builds   chan struct{} // a place for each activation under way, abandoned ones among them
	overdue  hashes        // ran out of time
	known    hashes        // were activated
	made     pool          // what the evaluations that run now share
	active   atomic.Pointer[snapshot]
}

var errNoPolicy = errors.New("no policy was activated")

// New returns an engine that decides nothing until something is activated. It reports every fault of the options at once.
func New(o Options) (*Engine, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("policy engine: %w", err)
	}
	return &Engine{options: o, slots: turns.New(o.MaxConcurrent, maxWaiting, longest*o.Timeout), builds: make(chan struct{}, maxAbandoned)}, nil
}

// Activate compiles m, runs its tests and the checks, and only then lets it decide. On error what was active before
// goes on deciding. An error of the compiler is a *ProblemsError.
//
// It returns when ctx ends, also while the compiler runs, which cannot be stopped: see buildInTime.
func (e *Engine) Activate(ctx context.Context, m Modules) (Snapshot, error) {
	e.activate.Lock()
	defer e.activate.Unlock()
	b := e.buildInTime(ctx, m)
	if b.err != nil {
		return Snapshot{}, b.err
	}
	s := b.snapshot
	e.tested = b.tested
	s.activated = time.Now()
	e.active.Store(s)
	e.options.Log.Info("policies activated", zap.String(logkeys.Revision, s.revision))
	return Snapshot{s}, nil
}

// build changes nothing of the engine: its caller may have left. before is the base that passed its tests last.
func (e *Engine) build(ctx context.Context, m Modules, before tested) (b built) {
	p, problems := compile(ctx, m, e.options)
	if err := context.Cause(ctx); err != nil { // problems may be those of modules that were not looked at to the end
		return built{err: fmt.Errorf("%w: %w", errAbandoned, err)}
	}
	if len(problems) > 0 {
		return built{err: &ProblemsError{problems}}
	}
	w := e.options.work()
	ctx, cancel := within(ctx, e.options.TestTimeout, w.used)
	defer cancel()
	w.run(func() { b = e.test(ctx, p, m, before) })
	return b
}

// test runs the tests and checks of m, of which p was compiled, and those of its base.
func (e *Engine) test(ctx context.Context, p *program, m Modules, before tested) built {
	base, err := e.testBase(ctx, m.Base, before)
	if err != nil {
		return built{err: err}
	}
	s, err := p.try(ctx, m)
	if err != nil {
		return built{err: err}
	}
	s.tests += base.passed
	if base.revision == "" { // there is none to be tested here
		base = before
	}
	return built{snapshot: s, tested: base}
}

// tested is a base that passed its tests.
type tested struct {
	revision string
	passed   int
}

// testBase compiles a base and runs its tests and checks, unless it is the one that passed before. It returns the base as
// it passed, or nothing if no base is tested here.
func (e *Engine) testBase(ctx context.Context, base *Modules, before tested) (tested, error) {
	if base == nil || e.options.BaseTested {
		return tested{}, nil
	}
	p, problems := compile(ctx, *base, e.options)
	if len(problems) > 0 {
		return tested{}, &ProblemsError{problems}
	}
	revision := base.revision(p.data)
	if revision == before.revision {
		return before, nil
	}
	s, err := p.try(ctx, *base)
	if err != nil {
		return tested{}, err
	}
	return tested{revision, s.tests}, nil
}

// Active returns the policies that decide now, and whether there are any.
func (e *Engine) Active() (Snapshot, bool) {
	s := e.active.Load()
	return Snapshot{s}, s != nil
}

// Decide judges one input, of the schema that the policies were written for, with the policies that are active when it is
// called. Every error is an *Error and means that there is no decision: treat it as a denial.
func (e *Engine) Decide(ctx context.Context, input ast.Value) (Decision, error) {
	s, _ := e.Active()
	return e.DecideWith(ctx, s, nil, input)
}

// DecideWith is Decide with the policies of one snapshot. A caller that built its input after asking the snapshot whether it
// NeedsObject decides with that same snapshot; other policies may have become active since. The sender is who wants the decision: one that
// wants many waits for its own, and holds up no others.
func (e *Engine) DecideWith(ctx context.Context, s Snapshot, sender turns.Sender, input ast.Value) (Decision, error) {
	if s.s == nil {
		return Decision{}, fault(ReasonNoPolicy, errNoPolicy)
	}
	return e.decide(ctx, s.s, sender, input, nil)
}

// DecideAbout is DecideWith for an input that need not be made where a decision about it is remembered.
func (e *Engine) DecideAbout(ctx context.Context, s Snapshot, sender turns.Sender, q Question) (Decision, error) {
	if s.s == nil {
		return Decision{}, fault(ReasonNoPolicy, errNoPolicy)
	}
	place, d, ok := s.s.known.find(q)
	if ok && ctx.Err() == nil {
		return d, nil
	}
	return e.decide(ctx, s.s, sender, q.Value(s.s.reads.has), place)
}

// decide makes a decision, and remembers it at its place, if it has one.
func (e *Engine) decide(ctx context.Context, s *snapshot, sender turns.Sender, input ast.Value, place *fingerprint) (Decision, error) {
	if err := checkInput(input, e.options.MaxInputBytes); err != nil {
		return Decision{}, fault(ReasonInputSize, err)
	}
	slot := s.settled.find(input)
	if d, ok := slot.remembered(); ok && ctx.Err() == nil {
		return d, nil
	}
	done, err := e.slots.Take(ctx, sender)
	switch {
	case errors.Is(err, turns.ErrBusy):
		return Decision{}, fault(ReasonOverload, errBusy)
	case err != nil && isCallers(ctx):
		return Decision{}, fault(ReasonCanceled, err)
	case err != nil:
		return Decision{}, fault(ReasonOverload, errors.Join(errBusy, err))
	}
	defer done()
	d, err := s.decide(ctx, input, &e.made, e.options.Timeout, e.options.work())
	if err == nil {
		slot.remember(d)
		s.known.remember(place, d)
	}
	return d, err
}

var errBusy = errors.New("all evaluation slots are taken")

// maxWaiting bounds the decisions that wait for a slot. Callers have bounds of their own.
const maxWaiting = 4096
