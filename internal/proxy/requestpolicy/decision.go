package requestpolicy

import (
	"cmp"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// PolicyName is how records name these policies; the access list is another.
const PolicyName = "request"

// Codes of denials that no rule gave.
const (
	CodeNoPolicy    = "PN900" // nothing was ever activated
	CodeUndefined   = "PN901" // the policy has no result for this call
	CodeConflict    = "PN902" // rules give different values for one document
	CodeTimeout     = "PN903" // the evaluation took longer than it may
	CodeType        = "PN904" // the result is not a decision
	CodeOverload    = "PN905" // no evaluation slot became free in time
	CodeBuiltin     = "PN906" // a builtin function refused its operands
	CodeInternal    = "PN907" // any other error of the evaluator
	CodePanic       = "PN908" // a panic while the call was judged
	CodeInputSize   = "PN909" // the input is larger than an evaluation takes
	CodeInput       = "PN910" // the call cannot be shown to a policy whole
	CodeUnexplained = "PN911" // the policy refused, and no rule says why
	CodeMemory      = "PN912" // the evaluation made more than it may
	CodeCanceled    = "PN913" // the caller went away, or its deadline passed, before there was a decision
)

// failures give each reason of the engine its code.
var failures = map[policy.Reason]string{
	policy.ReasonNoPolicy:  CodeNoPolicy,
	policy.ReasonUndefined: CodeUndefined,
	policy.ReasonConflict:  CodeConflict,
	policy.ReasonTimeout:   CodeTimeout,
	policy.ReasonCanceled:  CodeCanceled,
	policy.ReasonMemory:    CodeMemory,
	policy.ReasonType:      CodeType,
	policy.ReasonOverload:  CodeOverload,
	policy.ReasonBuiltin:   CodeBuiltin,
	policy.ReasonInternal:  CodeInternal,
	policy.ReasonPanic:     CodePanic,
	policy.ReasonInputSize: CodeInputSize,
}

// Decision is the policy's decision about one call. Its zero value denies.
type Decision struct {
	Effect audit.Effect `json:"effect"`
	// Rule is the code of the rule that refused, or of the reason why nothing decided; empty if the call is allowed.
	Rule string `json:"rule"`
	// Reason is for the caller and the record. It holds no text of the request unless a rule's own message does.
	Reason string `json:"reason"`
	// Revision of the policies that were asked; empty if there were none.
	Revision string `json:"revision"`
	// Findings are all that the policy found, warnings and advice among them.
	Findings []policy.Finding `json:"findings"`
	// Err is what went wrong where no rule refused. It is for the log of this process: it may hold a stack.
	Err error `json:"-"`

	isDescribed bool // by the policies: the number of such codes is bounded by what authors wrote
}

// Label is Rule for a metric. Codes that a policy has computed, from what a caller sent perhaps, have one label.
func (d Decision) Label() string {
	if d.Rule == "" || d.isDescribed {
		return d.Rule
	}
	return "other"
}

// Allowed says whether the call may go on.
func (d Decision) Allowed() bool { return d.Effect == audit.EffectAllow }

// Record writes a denial into the decision of a record, which until then is the access list's. An allowed call keeps
// what the access list said, for it is that which allowed it.
func (d Decision) Record(into *audit.Decision) {
	if d.Allowed() {
		return
	}
	into.Effect, into.Rule, into.Reason = audit.EffectDeny, d.Rule, d.Reason
	into.Policy = &audit.Policy{Name: PolicyName, Revision: cmp.Or(d.Revision, "none")}
}

// MayChange says that the same call may fare better later: the policy had no time to answer, or the caller none to wait.
func (d Decision) MayChange() bool {
	return d.Rule == CodeTimeout || d.Rule == CodeOverload || d.Rule == CodeCanceled
}

func deny(code, reason, revision string, err error) Decision {
	return Decision{Effect: audit.EffectDeny, Rule: code, Reason: reason, Revision: revision, Findings: []policy.Finding{}, Err: err, isDescribed: true}
}

// explain turns a decision of the engine into one that says which rule refused.
func explain(s policy.Snapshot, d policy.Decision) Decision {
	out := Decision{Effect: audit.EffectAllow, Revision: d.Revision, Findings: d.Findings}
	for _, f := range d.Findings {
		if f.Effect == policy.EffectDeny {
			rule, known := s.Rule(f.Code)
			out.Effect, out.Rule, out.isDescribed = audit.EffectDeny, f.Code, known
			out.Reason = cmp.Or(f.Message, rule.Title, "refused by rule "+f.Code)
			return out
		}
	}
	if !d.Allowed {
		out.isDescribed = true
		out.Effect, out.Rule, out.Reason = audit.EffectDeny, CodeUnexplained, "the request policy refuses and does not say why"
		return out
	}
	out.Reason = "no rule of the request policy refuses"
	return out
}
