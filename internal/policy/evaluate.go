package policy

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
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

// limit makes what ends an evaluation that began now: a flag that OPA reads between expressions. It is set by the caller's context, and
// once the process has used as much processor time as the time-out since then. The clock alone would refuse a call whose evaluation took
// no time and got none, on a machine that is busy otherwise; it ends an evaluation after longest time-outs. stop must be called.
func limit(ctx context.Context, timeout time.Duration, used func() time.Duration) (cancel topdown.Cancel, stop func()) {
	l := &limited{Cancel: topdown.NewCancel(), timeout: timeout, used: used, began: used()}
	l.next()
	if ctx.Done() == nil {
		return l.Cancel, l.stop
	}
	release := context.AfterFunc(ctx, l.Cancel.Cancel)
	return l.Cancel, func() { l.stop(); release() }
}

// limited looks at the processor time after each time-out.
type limited struct {
	topdown.Cancel
	timeout, began time.Duration
	used           func() time.Duration

	mu      sync.Mutex // guards what follows
	timer   *time.Timer
	times   int
	stopped bool
}

func (l *limited) next() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped {
		l.timer = time.AfterFunc(l.timeout, l.look)
	}
}

func (l *limited) look() {
	if l.times++; l.times >= longest || l.used()-l.began >= l.timeout { // one timer at a time counts
		l.Cancel.Cancel()
		return
	}
	l.next()
}

func (l *limited) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.timer.Stop()
}

// evaluate asks one query about one input, on the caller's goroutine, until cancel stops it. A builtin that is running
// finishes first; the allowed builtins take time in proportion to their operands.
func evaluate(ctx context.Context, q query, input ast.Value, cancel topdown.Cancel) (v ast.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fault(ReasonPanic, fmt.Errorf("%v\n%s", p, debug.Stack()))
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, fault(ReasonTimeout, err)
	}
	// Nobody reads OPA's own figures, and taking them is a part of the cost of a small policy.
	results, err := q.Eval(ctx, rego.EvalParsedInput(input), rego.EvalExternalCancel(cancel),
		rego.EvalBaseCache(q.data), rego.EvalMetrics(metrics.NoOp()))
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
