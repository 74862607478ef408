package policy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

const (
	// maxMade bounds what one evaluation makes, in bytes. It counts what is made, also if it is not kept.
	maxMade = 64 << 20
	// maxMadeTogether bounds what the evaluations of one engine that run at one time make beyond ownShare of each.
	maxMadeTogether = 128 << 20
	// ownShare is what an evaluation may make whatever others make. Decisions about ordinary objects stay below it.
	ownShare = 1 << 20
)

var (
	errMade         = fmt.Errorf("the evaluation makes more than %d MiB of values", maxMade>>20)
	errMadeTogether = fmt.Errorf("the evaluations that run at this time make more than %d MiB of values together", maxMadeTogether>>20)
	errUnbounded    = errors.New("the evaluation has no bound for what it makes")
)

// pool is what the evaluations of an engine share.
type pool struct{ taken atomic.Int64 }

// budget is what is left for one evaluation, of a decision or a test.
//
// OPA bounds no memory. Each function that can make something large takes the most that its result may cost before it makes
// it, see costs, and so does each value that a comprehension or a rule adds to what it collects, see chargeCollections. What it takes to
// compare a value with another is bounded as well, see weigh.
type budget struct {
	left atomic.Int64
	pool *pool // nil for what runs alone
	work *work // nil if it is not measured

	mu     sync.Mutex
	levels int64       // of a comparison, which were paid for, see bear
	stack  paidStack   // see brake
	input  ast.Value   // whose levels are free; nil for tests
	own    *evaluation // nil for tests
}

type budgetKey struct{}

// withBudget returns a context under which an evaluation, which is part of some work, may make maxMade. Release gives what it took back to the pool.
func withBudget(ctx context.Context, p *pool, w *work) (bounded context.Context, release func()) {
	b := &budget{pool: p, work: w, levels: freeLevels, stack: paidStack{freeStack, freeStack}}
	b.left.Store(maxMade)
	return context.WithValue(ctx, budgetKey{}, b), b.release
}

// Bounded returns a context under which policies may be evaluated without an Engine, as OPA's own runner does for tests. All that is evaluated under it
// has one budget.
func Bounded(ctx context.Context) context.Context {
	ctx, _ = withBudget(ctx, nil, nil)
	return ctx
}

// spent is what an evaluation has taken of a budget.
type spent struct {
	left, levels int64
	stack        paidStack
}

// state returns what was taken so far, for restore.
func (b *budget) state() spent {
	if b == nil {
		return spent{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return spent{b.left.Load(), b.levels, b.stack}
}

// restore gives back what was taken since, for an evaluation that begins anew.
func (b *budget) restore(s spent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.left.Swap(s.left)
	b.levels, b.stack = s.levels, s.stack
	if b.pool != nil {
		b.pool.taken.Add(shared(s.left) - shared(left))
	}
}

// shared is how much of what was made counts for the pool when left is left.
func shared(left int64) int64 { return max(0, maxMade-left-ownShare) }

func (b *budget) release() {
	if b.pool != nil {
		b.pool.taken.Add(-shared(b.left.Load()))
	}
}

// take fails if n bytes more are too many. What fails is not taken.
func (b *budget) take(n int64) error {
	if b == nil {
		return errUnbounded
	}
	left := b.left.Load()
	if n < 0 || n > left {
		return errMade
	}
	if left = b.left.Add(-n); left < 0 { // another goroutine was faster
		b.left.Add(n)
		return errMade
	}
	if b.pool == nil {
		return nil
	}
	if more := shared(left) - shared(left+n); more > 0 && b.pool.taken.Add(more) > maxMadeTogether {
		b.pool.taken.Add(-more)
		b.left.Add(n)
		return errMadeTogether
	}
	return nil
}

// budgetOf is the budget of an evaluation, or nil, from which nothing can be taken.
func budgetOf(ctx context.Context) *budget {
	if ctx == nil {
		return nil
	}
	b, _ := ctx.Value(budgetKey{}).(*budget)
	return b
}

// halted is an error that ends the evaluation, if there is one.
func halted(err error) error {
	if err == nil {
		return nil
	}
	return topdown.Halt{Err: refused(err)}
}

// refused gives an error of a budget its reason.
func refused(err error) *Error {
	switch {
	case errors.Is(err, errMadeTogether):
		return fault(ReasonOverload, err)
	case errors.Is(err, errFinding):
		return fault(ReasonType, err)
	case errors.Is(err, errCharge):
		return fault(ReasonInternal, err)
	case errors.Is(err, errHeavy):
		return fault(ReasonTimeout, err)
	}
	return fault(ReasonMemory, err)
}

// OPA's functions are those of the process. From now on each that takes many steps for its operands refuses those for which it would take
// too many, and each that has a cost takes it, before it runs, wherever it is called.
func init() {
	for name := range steps {
		run := topdown.GetBuiltin(name)
		topdown.RegisterBuiltinFunc(name, func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
			err := checkSteps(name, operands)
			if err == nil {
				err = checkMatches(bctx, name, operands)
			}
			if err != nil {
				return topdown.Halt{Err: fault(ReasonTimeout, err)}
			}
			return run(bctx, operands, iter)
		})
	}
	for name, cost := range costs {
		run := topdown.GetBuiltin(name)
		ast.BuiltinMap[name].CanSkipBctx = false // or it would be called without a context
		topdown.RegisterBuiltinFunc(name, func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
			if err := budgetOf(bctx.Context).take(cost(operands)); err != nil {
				return halted(err)
			}
			return run(bctx, operands, func(result *ast.Term) error {
				if err := bearEach(bctx, result); err != nil {
					return halted(err)
				}
				return iter(result)
			})
		})
	}
	walk := topdown.GetBuiltin(ast.WalkBuiltin.Name)
	ast.WalkBuiltin.CanSkipBctx = false
	topdown.RegisterBuiltinFunc(ast.WalkBuiltin.Name, func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
		return walk(bctx, operands, func(t *ast.Term) error { // each result is a path of its own
			if err := budgetOf(bctx.Context).take(costOfPath(t)); err != nil {
				return halted(err)
			}
			return iter(t)
		})
	})
}
