package policyset

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// trialTimeout bounds one examination with all its validators. The API server waits ten seconds for the answer.
const trialTimeout = 8 * time.Second

// Validator finds out whether sources could decide, without letting them. Its methods are for one caller at a time.
type Validator struct{ engine *policy.Engine }

// NewValidator returns a Validator that has tried nothing yet.
func NewValidator() (*Validator, error) {
	// The base decides already; it is not examined.
	engine, err := policy.New(policy.Options{TestTimeout: trialTimeout, BaseTested: true, Trial: true})
	if err != nil {
		return nil, err
	}
	return &Validator{engine}, nil
}

// Validate puts the sources together, compiles, tests and checks them.
func (t *Validator) Validate(ctx context.Context, s Sources) error {
	modules, err := s.Assemble()
	if err != nil {
		return err
	}
	_, err = t.engine.Activate(ctx, modules) // this engine decides nothing
	return err
}

// WithPipePolicy returns the sources with p in the place of its namesake.
func (s Sources) WithPipePolicy(p v1alpha1.PipePolicy) Sources {
	s = s.without(KindPipePolicy, p.Name)
	s.PipePolicies = append(s.PipePolicies, p)
	return s
}

// WithPolicyModule returns the sources with m in the place of its namesake.
func (s Sources) WithPolicyModule(m v1alpha1.PolicyModule) Sources {
	s = s.without(KindPolicyModule, m.Name)
	s.PolicyModules = append(s.PolicyModules, m)
	return s
}

// without leaves out one object.
func (s Sources) without(kind, name string) Sources {
	return s.filtered(func(k, n string) bool { return k != kind || n != name })
}

// only leaves one object, and no other.
func (s Sources) only(kind, name string) Sources {
	return s.filtered(func(k, n string) bool { return k == kind && n == name })
}

// filtered copies the lists: what a cache returned is not changed.
func (s Sources) filtered(keep func(kind, name string) bool) Sources {
	s.PipePolicies = slices.DeleteFunc(slices.Clone(s.PipePolicies), func(p v1alpha1.PipePolicy) bool { return !keep(KindPipePolicy, p.Name) })
	s.PolicyModules = slices.DeleteFunc(slices.Clone(s.PolicyModules), func(m v1alpha1.PolicyModule) bool { return !keep(KindPolicyModule, m.Name) })
	return s
}

// Examine says what would come of the sources because of the one object that is named: fault is what is wrong with it,
// and elsewhere is why the set still would not decide although the object is not to blame. An object must not be refused
// for the faults of others: a set that is broken in two places is repaired one place at a time.
func (t *Validator) Examine(ctx context.Context, s Sources, kind, name string) (fault, elsewhere error) {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	all := t.Validate(ctx, s)
	if all == nil || ctx.Err() != nil {
		return all, nil
	}
	if blames(all, kind, name) {
		return all, nil
	}
	before := t.Validate(ctx, s.without(kind, name))
	if before == nil { // it was fit without this object
		return all, nil
	}
	if alone := t.Validate(ctx, s.only(kind, name)); alone != nil {
		return alone, nil
	}
	return nil, before
}

// blames reports whether err names the object.
func blames(err error, kind, name string) bool {
	for _, e := range Leaves(err) {
		if o, ok := errors.AsType[*ObjectError](e); ok && o.Kind == kind && o.Name == name {
			return true
		}
	}
	byModule, _ := ProblemsOf(err)
	return kind == KindPolicyModule && len(byModule[name]) > 0
}
