package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// coldTimes is how many time-outs of a decision a check may take.
const coldTimes = 8

// Check is an invariant that modules must hold before they decide, whatever their authors' tests say: that a known
// breach is refused, for one.
type Check struct {
	Name  string
	Input any
	// Data replaces Modules.Data for this check; nil keeps the modules' own.
	Data map[string]any
	// Want returns what is wrong with a decision, or nil.
	Want func(Decision) error
	// OfBase is set for a check that modules with a Base need not hold themselves: that something is admitted. What is
	// added to a policy may refuse more, but never less.
	OfBase bool
}

// complete reports whether a check could fail, and be named then.
func (c Check) complete() bool { return c.Name != "" && c.Want != nil }

// runChecks reports every check that does not hold. An evaluation without a decision fails its check even where a denial
// is wanted: modules that cannot judge a plain input would deny everyone.
func (p *program) runChecks(ctx context.Context, s *snapshot, own []Check) error {
	var faults []error
	for i, c := range own {
		if !c.complete() {
			faults = append(faults, fmt.Errorf("policy check %d (%q) of the modules needs a name and a Want", i, c.Name))
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	for _, c := range slices.Concat(p.options.Checks, own) {
		if err := p.runCheck(ctx, s, c); err != nil {
			faults = append(faults, fmt.Errorf("policy check %q: %w", c.Name, err))
		}
	}
	return errors.Join(faults...)
}

func (p *program) runCheck(ctx context.Context, s *snapshot, c Check) error {
	if c.Data != nil {
		data, err := newDocument(c.Data, p.options.Limits.DataBytes)
		if err != nil {
			return err
		}
		if s, err = p.snapshot(ctx, s.revision, data); err != nil {
			return err
		}
	}
	input, ok := c.Input.(ast.Value)
	if !ok {
		var err error
		if input, err = ToValue(c.Input); err != nil {
			return err
		}
	}
	// The time-out of a decision is for a warm process, and here a slow machine must not look like a wrong policy. But one that takes several times as
	// long for what every policy is asked could only refuse.
	d, err := s.decide(ctx, input, nil, coldTimes*p.options.Timeout, p.options.work())
	if err != nil {
		return err
	}
	return c.Want(d)
}
