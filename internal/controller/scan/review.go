package scan

import (
	"context"
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// Reviews returns a Judge that asks reviewer, whose engine it is, what would become of the object if it were created
// now. The reviews leave no trace.
func Reviews(reviewer *admission.Reviewer, engine admission.Engine) Judge {
	return func(ctx context.Context, raw []byte) (Judged, error) {
		req, err := admission.ObjectReview(raw)
		if err != nil {
			return Judged{}, err
		}
		res := reviewer.Review(admission.WithoutTrace(ctx), req)
		snapshot, ok := engine.Active()
		if !ok || res.Revision != snapshot.Revision() {
			return Judged{Failure: "the policies changed meanwhile", Passing: true}, nil
		}
		return judgedFrom(&res, snapshot.Rule)
	}
}

// judgedFrom puts the result of a review into the terms of the scan.
func judgedFrom(res *admission.Result, rule func(code string) (policy.Rule, bool)) (Judged, error) {
	j := Judged{Revision: res.Revision}
	if res.Reason != "" {
		// The first line says why; the next has a decision id, another one each time.
		j.Failure, _, _ = strings.Cut(res.Message, "\n")
		j.Passing = isOfTheMoment(policy.Reason(res.Reason))
		return j, nil
	}
	refuses := false
	for _, d := range res.Details {
		known, ok := rule(d.Finding.Code)
		f := Finding{d, ok, known.Severity}
		refuses = refuses || effectOf(f) == effectDeny
		j.Findings = append(j.Findings, f)
	}
	if !res.Allowed && !refuses {
		return Judged{}, fmt.Errorf("the object is refused, and no finding says why")
	}
	return j, nil
}

// isOfTheMoment reports whether another attempt may succeed.
func isOfTheMoment(r policy.Reason) bool {
	return r == policy.ReasonOverload || r == policy.ReasonTimeout || r == policy.ReasonNoPolicy
}
