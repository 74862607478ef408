package policy

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
)

var errNoResult = errors.New("the policy has no result")

// clock is when this program began.
var clock = time.Now()

// longest is how many time-outs an evaluation, and the wait for a slot, may take by the clock.
const longest = 20

// limit makes the flag that ends an evaluation that begins now; OPA reads it between expressions. It is set when the caller's context ends, or by
// [endAfter]. stop must be called.
func limit(ctx context.Context, timeout time.Duration, used func() time.Duration) (cancel topdown.Cancel, stop func()) {
	cancel = topdown.NewCancel()
	halt := endAfter(timeout, used, cancel.Cancel)
	if ctx.Done() == nil {
		return cancel, halt
	}
	release := context.AfterFunc(ctx, cancel.Cancel)
	return cancel, func() { halt(); release() }
}

// within is context.WithTimeout with the time of [endAfter]. The cause of the context's end is errTimeUp.
func within(ctx context.Context, timeout time.Duration, used func() time.Duration) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	halt := endAfter(timeout, used, func() { cancel(errTimeUp) })
	return ctx, func() { halt(); cancel(nil) }
}

// endAfter calls end once the work has used as much processor time as the time-out, and not before the time-out has passed by the clock. The
// clock alone would end work that got no processor, on a machine that is busy otherwise; it does so after longest time-outs. stop must be called.
func endAfter(timeout time.Duration, used func() time.Duration, end func()) (stop func()) {
	l := &limited{end: end, timeout: timeout, used: used, began: used(), begun: time.Now()}
	l.next(timeout)
	return l.stop
}

// limited looks at the processor time when all of the time-out can have been used, and again when the rest can.
type limited struct {
	end            func()
	timeout, began time.Duration
	begun          time.Time
	used           func() time.Duration

	mu      sync.Mutex // guards the rest
	timer   *time.Timer
	stopped bool
}

// next looks again after a while.
func (l *limited) next(after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped {
		l.timer = time.AfterFunc(after, l.look)
	}
}

func (l *limited) look() {
	rest, atMost := l.timeout-(l.used()-l.began), longest*l.timeout-time.Since(l.begun)
	if rest <= 0 || atMost <= 0 {
		l.end()
		return
	}
	l.next(min(max(rest, l.timeout/20), atMost)) // rarely enough to cost nothing
}

func (l *limited) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.timer.Stop()
}

// evaluate asks one query about one input, or about none, within the budget of ctx and until cancel stops it. A builtin that is running
// finishes first; the allowed builtins take time in proportion to their operands.
//
// It evaluates on the caller's goroutine, whose stack stays as long as it became, until the collector shortens it: that may be a connection's, which lasts. So
// an evaluation that needs more than an ordinary stack begins anew on a goroutine that ends with it. Few do, and it costs the others nothing.
func evaluate(ctx context.Context, q query, input ast.Value, cancel topdown.Cancel, options ...rego.EvalOption) (v ast.Value, err error) {
	b := budgetOf(ctx)
	before := b.state()
	v, err = evaluateHere(ctx, q, input, &brake{flag: cancel, budget: b, isShort: true}, options)
	if !errors.Is(err, errLong) {
		return v, err
	}
	b.restore(before)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.work.run(func() { v, err = evaluateHere(ctx, q, input, &brake{flag: cancel, budget: b}, options) })
	}()
	<-done
	return v, err
}

func evaluateHere(ctx context.Context, q query, input ast.Value, stops *brake, options []rego.EvalOption) (v ast.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fault(ReasonPanic, fmt.Errorf("%v\n%s", p, debug.Stack()))
		}
	}()
	if err := ctx.Err(); isCallers(ctx) {
		return nil, fault(ReasonCanceled, err)
	} else if err != nil {
		return nil, fault(ReasonTimeout, err)
	}
	if b := budgetOf(ctx); b != nil {
		b.input, b.own = input, &evaluation{}
	}
	// OPA's own figures are not read, and taking them is a part of the cost of a small policy.
	options = append(slices.Clone(options), rego.EvalExternalCancel(stops), rego.EvalBaseCache(q.data), rego.EvalMetrics(metrics.NoOp()))
	if input != nil {
		options = append(options, rego.EvalParsedInput(input))
	}
	results, err := q.Eval(ctx, options...)
	if stops.err != nil {
		return nil, refused(stops.err)
	}
	if err != nil {
		return nil, evaluationFault(ctx, err)
	}
	if len(results) == 0 {
		return nil, fault(ReasonUndefined, errNoResult)
	}
	if len(results) != 1 || len(results[0].Expressions) != 1 {
		return nil, fault(ReasonType, fmt.Errorf("the policy has %d results", len(results)))
	}
	term, ok := results[0].Expressions[0].Value.(*ast.Term)
	if !ok {
		return nil, fault(ReasonType, fmt.Errorf("the result is a %T", results[0].Expressions[0].Value))
	}
	return term.Value, nil
}
