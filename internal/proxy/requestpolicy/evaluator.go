package requestpolicy

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/turns"
)

// Evaluator decides about calls with the policies that were activated last. Before the first activation it refuses all of them.
// Its methods may be called by many at once.
type Evaluator struct{ engine *policy.Engine }

// New returns an evaluator without policies. Entrypoint of o is replaced, and the checks of package nodepolicy are added;
// Timeout and MaxConcurrent bound each evaluation and their number.
func New(o policy.Options) (*Evaluator, error) {
	engine, err := policy.New(nodepolicy.EngineOptions(o))
	if err != nil {
		return nil, fmt.Errorf("request policy: %w", err)
	}
	return &Evaluator{engine}, nil
}

// Over returns an evaluator that asks an engine of nodepolicy.EngineOptions. What the engine has activated decides.
func Over(engine *policy.Engine) *Evaluator { return &Evaluator{engine} }

// Activate compiles m, runs its tests and the checks, and only then lets it decide. On error what was active before goes on
// deciding.
func (e *Evaluator) Activate(ctx context.Context, m policy.Modules) (policy.Snapshot, error) {
	return e.engine.Activate(ctx, m)
}

// Active returns the policies that decide now, and whether there are any.
func (e *Evaluator) Active() (policy.Snapshot, bool) { return e.engine.Active() }

// Decide evaluates the policy for a call. If the policy does not answer, the call is denied.
func (e *Evaluator) Decide(ctx context.Context, call *apiserver.Call, s *Circumstances) Decision {
	var sender turns.Sender
	if s != nil {
		sender = turns.Sender{s.Sender}
	}
	return e.decide(ctx, sender, func() (ast.Value, error) { return Input(call, s) })
}

// DecideInput evaluates the policy for an input that was made before, as FromRecord does.
func (e *Evaluator) DecideInput(ctx context.Context, input ast.Value) Decision {
	return e.decide(ctx, nil, func() (ast.Value, error) { return input, nil })
}

func (e *Evaluator) decide(ctx context.Context, sender turns.Sender, input func() (ast.Value, error)) (d Decision) {
	active, ok := e.engine.Active()
	revision := ""
	if ok {
		revision = active.Revision()
	}
	defer func() {
		if v := recover(); v != nil {
			d = deny(CodePanic, "the request policy could not be asked: panic", revision, fmt.Errorf("%T\n%s", v, debug.Stack()))
		}
	}()
	in, err := input()
	if err != nil {
		return deny(CodeInput, "the call cannot be shown to the request policy: "+err.Error(), revision, nil)
	}
	decided, err := e.engine.DecideWith(ctx, active, sender, in)
	if err != nil {
		return failed(err, revision)
	}
	return explain(active, decided)
}

// failed is the denial of an evaluation without a decision. The caller hears the kind of the fault and no more.
func failed(err error, revision string) Decision {
	code, reason := CodeInternal, policy.ReasonInternal
	if own, ok := errors.AsType[*policy.Error](err); ok {
		reason = own.Reason
		if known, ok := failures[reason]; ok {
			code = known
		}
	}
	return deny(code, "the request policy gave no decision: "+string(reason), revision, err)
}
