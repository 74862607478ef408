package policy

import (
	"context"
	"errors"
	"fmt"

	"github.com/open-policy-agent/opa/v1/topdown"
)

// Reason says why there is no decision.
type Reason string

// Reasons for which there is no decision. A caller treats each of them as a denial.
const (
	ReasonNoPolicy  Reason = "no_policy"  // nothing was ever activated
	ReasonUndefined Reason = "undefined"  // the policy has no result for this input
	ReasonConflict  Reason = "conflict"   // rules give different values for the same document
	ReasonTimeout   Reason = "timeout"    // the evaluation took longer than it may
	ReasonCanceled  Reason = "canceled"   // the caller went away, or gave it no more time
	ReasonMemory    Reason = "memory"     // the evaluation made more than it may
	ReasonType      Reason = "type"       // the result is not a decision
	ReasonOverload  Reason = "overload"   // no evaluation slot became free in time
	ReasonBuiltin   Reason = "builtin"    // a builtin function refused its operands
	ReasonInternal  Reason = "internal"   // any other error of the evaluator
	ReasonPanic     Reason = "panic"      // the evaluator panicked
	ReasonInputSize Reason = "input_size" // the input is larger or deeper than Options allow
)

// Error is the error of every evaluation that gives no decision.
type Error struct {
	Reason Reason
	Err    error
}

// Error names the reason and the cause.
func (e *Error) Error() string { return "policy decision: " + string(e.Reason) + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func fault(r Reason, err error) *Error { return &Error{Reason: r, Err: err} }

// errTimeUp is why a context of [within] ends. A deadline of the caller's own is another error.
var errTimeUp = fmt.Errorf("%w", context.DeadlineExceeded)

// isCallers reports whether ctx ended because the caller went away, or because the caller's own time was over.
func isCallers(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTimeUp)
}

// evaluationFault gives an error of the evaluator its reason.
func evaluationFault(ctx context.Context, err error) *Error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	reason := ReasonInternal
	if e, ok := errors.AsType[*topdown.Error](err); ok {
		switch e.Code {
		case topdown.CancelErr:
			reason = ReasonTimeout
			if isCallers(ctx) {
				reason = ReasonCanceled
			}
			if cause := context.Cause(ctx); cause != nil {
				err = errors.Join(err, cause)
			}
		case topdown.ConflictErr:
			reason = ReasonConflict
		case topdown.BuiltinErr, topdown.TypeErr:
			reason = ReasonBuiltin
		}
	}
	return fault(reason, err)
}
