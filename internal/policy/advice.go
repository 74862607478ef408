package policy

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// CodeAdviceFailed is the code of the finding that says that advice could not be evaluated.
const CodeAdviceFailed = "PG998"

// Documents beside the entry point.
const (
	findingsName = "findings" // what a decision rests on
	adviceName   = "advice"   // what is said beside it
)

// Rules that warn or audit must never deny, whatever fails inside them. In one document that cannot be had: OPA evaluates
// `findings` as a whole, and an error in any of its rules leaves no set, so that a rule that would have denied is lost with the
// others. The only safe answer then is a denial. Not raising builtin errors would be worse, for a rule that denies
// would silently say nothing.
//
// So there is a second document, `advice contains {...}`, of findings that warn or audit. It is evaluated after the decision,
// in what is left of its time, and what fails there becomes one audit finding. An author who tries out a
// rule puts it there first.

func adviceRef(entrypoint string) (ast.Ref, error) {
	ref, err := entrypointRef(entrypoint)
	if err != nil {
		return nil, err
	}
	return ref[:len(ref)-1].Append(ast.StringTerm(adviceName)), nil
}

func (s *snapshot) advise(ctx context.Context, input ast.Value, cancel topdown.Cancel) []Finding {
	value, err := evaluate(ctx, *s.advice, input, cancel)
	if err != nil {
		return adviceFailed(string(evaluationFault(ctx, err).Reason))
	}
	findings, err := decodeFindings(value)
	if err != nil {
		return adviceFailed(string(ReasonType))
	}
	for _, f := range findings {
		if f.Effect == EffectDeny {
			return adviceFailed(fmt.Sprintf("finding %s denies, which advice cannot", f.Code))
		}
	}
	return findings
}

func adviceFailed(why string) []Finding {
	return []Finding{{Code: CodeAdviceFailed, Effect: EffectAudit, Message: "advice could not be evaluated: " + why}}
}
