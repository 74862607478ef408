package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// CodeAdviceFailed is the code of findings that say that advice is missing, and why, or that there were more findings than are told.
const CodeAdviceFailed = "PG998"

const adviceWasLeftOut = "advice was left out: "

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
// in what is left of its time, and what fails there becomes an audit finding. An author who tries out a
// rule puts it there first. The set holds the advice of the base and of every module: an element at fault, or the many of one rule,
// take nothing away from the others. Only an error of the evaluation leaves no set, as in findings.

// maxAdviceFaults is how many faults of elements, and codes of which there were too many, are told.
const maxAdviceFaults = 8

func (s *snapshot) advise(ctx context.Context, input ast.Value, cancel topdown.Cancel) []Finding {
	value, err := evaluate(ctx, *s.advice, input, cancel)
	if err != nil {
		return []Finding{aboutAdvice("advice could not be evaluated: " + string(evaluationFault(ctx, err).Reason))}
	}
	each, _, err := listed(value)
	if err != nil {
		return []Finding{aboutAdvice("advice could not be evaluated: " + string(ReasonType))}
	}
	taken := []Finding{}
	var faults adviceFaults
	_ = each(func(t *ast.Term) error { // every element is looked at
		f, err := decodeFinding(t.Value)
		switch {
		case err != nil:
			faults.add(err.Error())
		case f.Effect == EffectDeny:
			faults.add("finding " + f.Code + " denies, which advice cannot")
		default:
			taken = append(taken, f)
		}
		return nil
	})
	sortFindings(taken)
	s.order(taken)
	taken, left := firstOfEach(taken, maxFindings)
	taken = append(taken, faults.findings()...)
	if len(left) > 0 {
		taken = append(taken, leftOut(adviceWasLeftOut, left))
	}
	return taken
}

// adviceFaults counts elements that are left out, by what is wrong with them.
type adviceFaults struct {
	count map[string]int
	told  []string // the keys of count, in the order of the elements
	other int      // elements with further faults
}

func (a *adviceFaults) add(why string) {
	switch n := a.count[why]; {
	case n == 0 && len(a.told) == maxAdviceFaults:
		a.other++
		return
	case n == 0:
		a.told = append(a.told, why)
	}
	if a.count == nil {
		a.count = map[string]int{}
	}
	a.count[why]++
}

func (a *adviceFaults) findings() []Finding {
	var out []Finding
	for _, why := range a.told {
		if n := a.count[why]; n > 1 {
			why += fmt.Sprintf(" (%d elements)", n)
		}
		out = append(out, aboutAdvice(adviceWasLeftOut+why))
	}
	if a.other > 0 {
		out = append(out, aboutAdvice(fmt.Sprintf("%sfurther faults (%d elements)", adviceWasLeftOut, a.other)))
	}
	return out
}

// bound leaves maxFindings of a decision's findings, those that deny before the others, tells of the rest in one finding, and
// keeps what denies of it. It does not change what was decided.
func (d *Decision) bound(order func([]Finding)) {
	if len(d.Findings) <= maxFindings {
		return
	}
	var denials, others []Finding
	for _, f := range d.Findings {
		if f.Effect == EffectDeny {
			denials = append(denials, f)
		} else {
			others = append(others, f)
		}
	}
	denials, d.Untold = firstOfEach(denials, maxFindings)
	others, left := firstOfEach(others, maxFindings-len(denials))
	d.Findings = append(denials, others...)
	sortFindings(d.Findings)
	order(d.Findings)
	d.Findings = append(d.Findings, leftOut("findings were left out: ", append(slices.Clip(d.Untold), left...)))
}

// firstOfEach takes as many of sorted findings as there is room for: the first of each code, then the second of each, and so on.
func firstOfEach(findings []Finding, room int) (taken, left []Finding) {
	if len(findings) <= room {
		return findings, nil
	}
	type group struct{ first, size, taken int }
	var groups []group
	for i, f := range findings {
		if i == 0 || f.Code != findings[i-1].Code {
			groups = append(groups, group{first: i})
		}
		groups[len(groups)-1].size++
	}
	for room > 0 {
		for i := range groups {
			if g := &groups[i]; room > 0 && g.taken < g.size {
				g.taken++
				room--
			}
		}
	}
	for _, g := range groups {
		taken = append(taken, findings[g.first:g.first+g.taken]...)
		left = append(left, findings[g.first+g.taken:g.first+g.size]...)
	}
	return taken, left
}

// leftOut tells of findings of which there were too many, by their codes.
func leftOut(what string, left []Finding) Finding {
	count := map[string]int{}
	for _, f := range left {
		count[f.Code]++
	}
	codes := slices.Sorted(maps.Keys(count))
	told := codes[:min(len(codes), maxAdviceFaults)]
	each := make([]string, len(told))
	for i, code := range told {
		each[i] = fmt.Sprintf("%s (%d)", code, count[code])
	}
	why := fmt.Sprintf("%s%d findings, since at most %d are taken: %s", what, len(left), maxFindings, strings.Join(each, ", "))
	if more := len(codes) - len(told); more > 0 {
		why += fmt.Sprintf(" and %d more codes", more)
	}
	return aboutAdvice(why)
}

func aboutAdvice(message string) Finding {
	return Finding{Code: CodeAdviceFailed, Effect: EffectAudit, Message: message}
}
