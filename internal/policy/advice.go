package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// CodeAdviceFailed is the code of findings that say that advice is missing, and why.
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
// in what is left of its time, and what fails there becomes an audit finding. An author who tries out a
// rule puts it there first. The set holds the advice of the base and of every module: an element at fault, or the many of one rule,
// take nothing away from the others. Only an error of the evaluation leaves no set, as in findings.

// maxAdviceFaults is how many faults of elements, and codes of which there were too many, are told.
const maxAdviceFaults = 8

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
	each, _, err := listed(value)
	if err != nil {
		return adviceFailed(string(ReasonType))
	}
	taken := []Finding{}
	var faults adviceFaults
	_ = each(func(t *ast.Term) error { // every element is looked at
		f, err := decodeFinding(t.Value)
		if err == nil && f.Effect == EffectDeny {
			err = errors.New("finding " + f.Code + " denies, which advice cannot")
		}
		if err != nil {
			faults.add(err.Error())
			return nil
		}
		taken = append(taken, f)
		return nil
	})
	sortFindings(taken)
	s.order(taken)
	taken, beyond := firstOfEach(taken)
	return append(append(taken, faults.findings()...), beyond...)
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
		out = append(out, adviceLeftOut(why))
	}
	if a.other > 0 {
		out = append(out, adviceLeftOut(fmt.Sprintf("further faults (%d elements)", a.other)))
	}
	return out
}

// firstOfEach takes maxFindings of sorted findings at most: the first of each code, then the second of each, and so on. What it leaves out is told
// in one finding, beyond.
func firstOfEach(findings []Finding) (taken, beyond []Finding) {
	room := maxFindings
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
	var codes []string
	short := 0 // codes that are not among them
	for _, g := range groups {
		taken = append(taken, findings[g.first:g.first+g.taken]...)
		switch {
		case g.taken == g.size:
		case len(codes) == maxAdviceFaults:
			short++
		default:
			codes = append(codes, fmt.Sprintf("%s (%d)", findings[g.first].Code, g.size-g.taken))
		}
	}
	why := fmt.Sprintf("%d findings, since at most %d are taken: %s", len(findings)-len(taken), maxFindings, strings.Join(codes, ", "))
	if short > 0 {
		why += fmt.Sprintf(" and %d more codes", short)
	}
	return taken, []Finding{adviceLeftOut(why)}
}

func adviceLeftOut(why string) Finding {
	return Finding{Code: CodeAdviceFailed, Effect: EffectAudit, Message: "advice was left out: " + why}
}

func adviceFailed(why string) []Finding {
	return []Finding{{Code: CodeAdviceFailed, Effect: EffectAudit, Message: "advice could not be evaluated: " + why}}
}
