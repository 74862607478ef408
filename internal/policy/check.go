package policy

import (
	"context"
	"errors"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Check is an invariant that modules must hold before they decide, whatever their authors' tests say: that a known
// breach is refused, for one.
type Check struct {
	Name  string
	Input any
	// Data replaces Modules.Data for this check; nil keeps the modules' own.
	Data map[string]any
	// Want returns what is wrong with a decision, or nil.
	Want func(Decision) error
}

// runChecks reports every check that does not hold. An evaluation without a decision fails its check even where a denial
// is wanted: modules that cannot judge a plain input would deny everyone.
func (p *program) runChecks(ctx context.Context, s *snapshot) error {
	var faults []error
	for _, c := range p.options.Checks {
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
	// The time-out of a decision is for a warm process; here a slow machine must not look like a wrong policy.
	d, err := s.decide(ctx, input, p.options.TestTimeout)
	if err != nil {
		return err
	}
	return c.Want(d)
}
