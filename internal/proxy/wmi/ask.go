package wmi

import (
	"context"
	"errors"
	"fmt"
)

// Query returns the instances that a query selects, in WMI's order, at most Options.MaxResults of them.
// It ends early when ctx does.
func (p *Pool) Query(ctx context.Context, q Query) ([]Instance, error) {
	wql, err := q.WQL()
	if err != nil {
		return nil, fmt.Errorf("query %.64q: %w", q.Class, err)
	}
	return p.instances(ctx, "query", q.Class, q.Namespace, wql, q.Select)
}

// Associated returns the instances at the other end of an association, at most Options.MaxResults of them.
// It ends early when ctx does.
func (p *Pool) Associated(ctx context.Context, of Instance, through Association) ([]Instance, error) {
	wql, err := associators(of, through)
	if err != nil {
		return nil, fmt.Errorf("follow %.64q: %w", through.Through, err)
	}
	return p.instances(ctx, "follow", through.Through, of.Namespace, wql, nil)
}

func (p *Pool) instances(ctx context.Context, op, what, namespace, wql string, properties []string) ([]Instance, error) {
	return do(ctx, p, op+" "+what, func(ctx context.Context, s session) ([]Instance, error) {
		found, err := s.query(ctx, namespace, wql, properties)
		return found, named(op, what, err)
	})
}

// Call executes a method once. It is never repeated, also when the connection is lost on the way; and it goes on when ctx ends
// after it has begun (ErrOutcome). If a parameter is a Secret, no error has a text of the provider's: what it was given it may repeat, in whatever form.
func (p *Pool) Call(ctx context.Context, c Call) (Result, error) {
	in, err := c.check()
	if err != nil {
		return Result{}, fmt.Errorf("call %.64q: %w", c.what(), err)
	}
	result, err := do(ctx, p, "call "+c.what(), func(_ context.Context, s session) (Result, error) {
		result, err := s.call(c, in)
		return result, named("call", c.what(), err)
	})
	if answer, ok := errors.AsType[*Error](err); ok && c.hasSecret() {
		answer.Text = ""
	}
	return result, err
}
