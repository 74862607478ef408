package policy

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// snapshot is an activated set of policies. Nothing in it changes after it is published.
type snapshot struct {
	revision  string
	activated time.Time
	rules     map[string]Rule
	ofBase    map[string]bool // see program
	tests     int
	reads     fields
	companion any
	decision  query
	advice    *query   // nil if no module gives advice
	settled   *settled // nil without a selector
	known     *remembered
}

// Snapshot describes an activated set of policies.
type Snapshot struct{ s *snapshot }

// Revision is the hash of the modules and their data: "sha256:" and 64 hexadecimal digits.
func (s Snapshot) Revision() string { return s.s.revision }

// Activated is when these policies began to decide.
func (s Snapshot) Activated() time.Time { return s.s.activated }

// Rules returns what the modules' METADATA says of each code.
func (s Snapshot) Rules() map[string]Rule { return maps.Clone(s.s.rules) }

// Rule returns what the modules' METADATA says of one code.
func (s Snapshot) Rule(code string) (Rule, bool) {
	r, ok := s.s.rules[code]
	return r, ok
}

// Tests is how many tests passed before these policies were activated.
func (s Snapshot) Tests() int { return s.s.tests }

// Companion is Modules.Companion of the modules that were activated: nil if they had none.
func (s Snapshot) Companion() any { return s.s.companion }

// NeedsObject reports whether a policy may read input.object.
func (s Snapshot) NeedsObject() bool { return s.s.reads.has(objectField) }

// objectField is the field of the input with the whole object, which is made for policies that read it alone.
const objectField = "object"

// snapshot prepares the program's queries over data.
func (p *program) snapshot(ctx context.Context, revision string, data document) (*snapshot, error) {
	s := &snapshot{revision: revision, rules: p.rules, ofBase: p.ofBase, reads: p.reads, known: newRemembered(p.reads, p.options.Remember)}
	var err error
	if s.decision, err = p.prepare(ctx, p.options.Entrypoint, data); err != nil {
		return nil, err
	}
	ref, err := entrypointRef(p.options.Entrypoint)
	if err != nil {
		return nil, err
	}
	adviceRef := ref[:len(ref)-1].Append(ast.StringTerm(adviceName))
	if len(p.compiler.GetRulesExact(adviceRef)) > 0 {
		advice, err := p.prepare(ctx, adviceRef.String(), data)
		if err != nil {
			return nil, err
		}
		s.advice = &advice
	}
	if p.options.Selector != nil {
		s.settled = newSettled(p.options.Selector, p.readings(ref, adviceRef).follow)
	}
	return s, nil
}

// decide asks for the decision and, if there is one, for advice in the time and with the budget that is left.
func (s *snapshot) decide(ctx context.Context, input ast.Value, shared *pool, timeout time.Duration, w *work) (d Decision, err error) {
	w.run(func() { d, err = s.decideHere(ctx, input, shared, timeout, w) })
	return d, err
}

func (s *snapshot) decideHere(ctx context.Context, input ast.Value, shared *pool, timeout time.Duration, w *work) (Decision, error) {
	ctx, release := withBudget(ctx, shared, w)
	defer release()
	cancel, stop := limit(ctx, timeout, w.used)
	defer stop()
	value, err := evaluate(ctx, s.decision, input, cancel)
	if err != nil {
		return Decision{}, err
	}
	d, err := decodeDecision(value)
	if err != nil {
		return Decision{}, fault(ReasonType, err)
	}
	s.order(d.Findings)
	d.bound(s.order)
	d.Revision = s.revision
	if s.advice != nil {
		d.Findings = append(d.Findings, s.advise(ctx, input, cancel)...)
	}
	return d, nil
}

// order puts sorted findings of the base before those of additions. Readers are shown the first ones, and told the first that refuses: no addition can push
// those of the base out of sight.
func (s *snapshot) order(findings []Finding) {
	if s.ofBase == nil {
		return
	}
	place := func(f Finding) int {
		if ownCodes.MatchString(f.Code) || s.ofBase[f.Code] {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(place(a), place(b)) })
}
