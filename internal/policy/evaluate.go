package policy

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
)

var errNoResult = errors.New("the policy has no result")

// limit makes what ends an evaluation that began now: a flag that OPA reads between expressions, set by a timer and by
// the caller's context. stop must be called.
func limit(ctx context.Context, timeout time.Duration) (cancel topdown.Cancel, stop func()) {
	cancel = topdown.NewCancel()
	timer := time.AfterFunc(timeout, cancel.Cancel)
	if ctx.Done() == nil {
		return cancel, func() { timer.Stop() }
	}
	release := context.AfterFunc(ctx, cancel.Cancel)
	return cancel, func() { timer.Stop(); release() }
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
