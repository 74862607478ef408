package policy

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
)

var errNoResult = errors.New("the policy has no result")

// evaluate asks one query about one input, on the caller's goroutine. The timer and the caller's context stop it
// through a flag that OPA reads between expressions. A builtin that is running finishes first; the
// allowed builtins take time in proportion to their operands.
func evaluate(ctx context.Context, q rego.PreparedEvalQuery, input ast.Value, timeout time.Duration) (v ast.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fault(ReasonPanic, fmt.Errorf("%v\n%s", p, debug.Stack()))
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, fault(ReasonTimeout, err)
	}
	cancel := topdown.NewCancel()
	timer := time.AfterFunc(timeout, cancel.Cancel)
	defer timer.Stop()
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, cancel.Cancel)
		defer stop()
	}

	results, err := q.Eval(ctx, rego.EvalParsedInput(input), rego.EvalExternalCancel(cancel))
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
