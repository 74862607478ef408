package policy

import (
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// The weight of a value is what a comparison with an equal value takes: steps of time, and levels of the stack. It counts a value as a tree, however much
// of it is shared, and each member of a set or an object once for each that has its hash, among which it is looked for. OPA does not look at the
// time-out while it compares two values, sorts the members of a set or copies an object, and where it unifies two arrays or objects, it goes on with the
// next part from within the one before, so that the stack grows by each. A stack of 1 GiB ends the process, and nothing recovers from that.
//
// So no value comes to be that is too heavy. Those that comprehensions make are weighed before anything sees them, the results of functions that make
// collections as they come, those that are written out by what is in them, and the members of partial rules add up, since only OPA sees
// those collections. Inputs and data have bounds of their own, see checkInput.
const (
	// maxWeight bounds the steps: some dozens of milliseconds for a comparison, some hundreds to sort members that differ at their ends only.
	maxWeight = 1 << 21
	// levelBytes is what a level takes of the stack, rounded up, as a stack grows by doubling.
	levelBytes = 1 << 10
	// freeLevels are borne for nothing, as are those of the input, which anything may compare with itself.
	freeLevels = 1 << 10
	// textStep is how many bytes of text are compared, or hashed, in the time of one step.
	textStep = 64
	// plainDigits is the length of numbers that are compared without making other numbers of them. Each byte of a longer one takes numberSteps.
	plainDigits, numberSteps = 19, 8
	// fewMembers is the size of a collection in which texts are not expected to collide. Other members are expected to.
	fewMembers = 16
	// smallWeight is that of a value which is weighed again sooner than found.
	smallWeight = 16
)

var errHeavy = fmt.Errorf("the evaluation makes a value whose comparison takes more than %d steps", maxWeight)

// weight is what a comparison takes.
type weight struct{ steps, levels int64 }

// plus adds another, so many times, up to a weight that is too much.
func (w weight) plus(other weight, times int64) weight {
	if w.steps > maxWeight || other.steps > maxWeight || times > maxWeight {
		return weight{maxWeight + 1, w.levels}
	}
	return weight{min(w.steps+times*other.steps, maxWeight+1), min(w.levels+times*other.levels, maxWeight+1)}
}

// evaluation is what is known in one evaluation.
type evaluation struct {
	known   map[ast.Value]known // of arrays, sets and objects
	partial map[string]weight   // of the members of partial rules, by the name of the rule
}

type known struct {
	weight weight
	isPaid bool // by its own cost, and those of what it holds
}

type evaluationKey struct{}

// evaluationOf is that of a decision, or of a test, which OPA's runner evaluates: its cache is that of the one evaluation.
func evaluationOf(bctx topdown.BuiltinContext) *evaluation {
	if b := budgetOf(bctx.Context); b != nil && b.own != nil {
		return b.own
	}
	found, _ := bctx.Cache.Get(evaluationKey{})
	if e, ok := found.(*evaluation); ok {
		return e
	}
	e := &evaluation{}
	if bctx.Cache != nil {
		bctx.Cache.Put(evaluationKey{}, e)
	}
	return e
}

// bear refuses what takes too many steps, and takes what the levels take beyond those of the input: once for the most, as no two comparisons run
// at one time.
func (b *budget) bear(e *evaluation, w weight) error {
	if w.steps > maxWeight {
		return errHeavy
	}
	if w.levels <= freeLevels {
		return nil
	}
	if b == nil {
		return errUnbounded
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.levels > b.levels {
		b.knowInput(e)
	}
	if w.levels <= b.levels {
		return nil
	}
	if err := b.take((w.levels - b.levels) * levelBytes); err != nil {
		return err
	}
	b.levels = w.levels
	return nil
}

// knowInput bears the levels of the input, if there is one. The budget must be locked.
func (b *budget) knowInput(e *evaluation) {
	if b.input != nil {
		b.levels = max(b.levels, e.weigh(ast.NewTerm(b.input)).levels)
	}
}

// bearEach fails if one of the values is too heavy.
func bearEach(bctx topdown.BuiltinContext, terms ...*ast.Term) error {
	for _, t := range terms {
		switch t.Value.(type) {
		case *ast.Array, ast.Set, ast.Object:
			e := evaluationOf(bctx)
			if err := budgetOf(bctx.Context).bear(e, e.weigh(t)); err != nil {
				return err
			}
		}
	}
	return nil
}

// weigh returns the weight of a value.
func (e *evaluation) weigh(t *ast.Term) weight {
	w, _ := e.pay(nil, t) // only a budget refuses
	return w
}

// pay takes the cost of arrays, sets and objects in a value that were not paid for, and returns its weight. Without a budget it takes nothing.
func (e *evaluation) pay(b *budget, t *ast.Term) (weight, error) {
	switch v := t.Value.(type) {
	case ast.String:
		return weight{steps: 1 + int64(len(v))/textStep}, nil
	case ast.Number:
		if len(v) > plainDigits {
			return weight{steps: numberSteps * digits(t)}, nil
		}
	case *ast.Array, ast.Set, ast.Object:
		return e.collection(b, v)
	}
	return weight{steps: 1}, nil
}

func (e *evaluation) collection(b *budget, v ast.Value) (weight, error) {
	if found, ok := e.known[v]; ok && (found.isPaid || b == nil) {
		return found.weight, nil
	}
	if b != nil {
		each := int64(memberBytes)
		if _, ok := v.(*ast.Array); ok {
			each = termBytes
		}
		if err := b.take(memberBytes + each*length(v)); err != nil {
			return weight{}, err
		}
	}
	sum, err := e.parts(b, v)
	if err != nil {
		return weight{}, err
	}
	if b != nil || sum.steps > smallWeight {
		if e.known == nil {
			e.known = map[ast.Value]known{}
		}
		e.known[v] = known{weight: sum, isPaid: b != nil}
	}
	return sum, nil
}

// parts adds up what is in a collection, until that is too much.
func (e *evaluation) parts(b *budget, v ast.Value) (sum weight, err error) {
	sum = weight{steps: 1, levels: 1}
	add := func(t *ast.Term, times int64) (isOver bool) {
		w, fault := e.pay(b, t)
		if fault != nil {
			err = fault
		}
		sum = sum.plus(w, times)
		return fault != nil || sum.steps > maxWeight
	}
	switch v := v.(type) {
	case *ast.Array:
		v.Until(func(t *ast.Term) bool { return add(t, 1) })
	case ast.Set:
		equal := chainsOf(v.Len(), v.Until)
		v.Until(func(t *ast.Term) bool { return add(t, equal.of(t)) })
		sum.levels = 1 // sets are compared, not unified
	case ast.Object:
		equal := chainsOf(v.Len(), func(f func(*ast.Term) bool) bool { return v.Until(func(k, _ *ast.Term) bool { return f(k) }) })
		levels := sum.levels + int64(v.Len())
		v.Until(func(k, t *ast.Term) bool {
			isOver := add(k, equal.of(k))
			sum.levels = levels // keys are looked up, not unified
			isOver = isOver || add(t, 1)
			levels = sum.levels
			return isOver
		})
	}
	return sum, err
}

// chains are how many members of a collection have each hash, which is not counted if they are few.
type chains struct {
	few    int64
	counts map[int]int64
}

func chainsOf(n int, members func(func(*ast.Term) bool) bool) chains {
	if n <= fewMembers {
		return chains{few: int64(n)}
	}
	c := chains{counts: make(map[int]int64, n)}
	members(func(t *ast.Term) bool {
		c.counts[t.Hash()]++
		return false
	})
	return c
}

// of is how many members have the hash of this one.
func (c chains) of(t *ast.Term) int64 {
	if c.counts != nil {
		return c.counts[t.Hash()]
	}
	if _, ok := t.Value.(ast.String); ok {
		return 1
	}
	return c.few
}

// weightBuiltin fails if one of the values is too heavy. Its first operand is the name of the partial rule whose members they
// are, its second whether that makes a set, and then all members so far count as one value; it is empty for other values. No module may name it: the
// compiler adds the calls.
const weightBuiltin = "internal.charge_weight"

var weighing = &ast.Builtin{
	Name: weightBuiltin,
	Decl: types.NewVariadicFunction(types.Args(types.S, types.B), types.A, nil),
}

func init() {
	register(weighing, func(bctx topdown.BuiltinContext, operands []*ast.Term) (*ast.Term, error) {
		rule, ok := operands[0].Value.(ast.String)
		isSet, isMarked := operands[1].Value.(ast.Boolean)
		if !ok || !isMarked {
			return nil, errCharge
		}
		if err := bearEach(bctx, operands[2:]...); err != nil || rule == "" {
			return nil, err
		}
		return nil, bearMembers(bctx, string(rule), bool(isSet), operands[2:])
	})
}

// bearMembers adds members to those that a partial rule has made so far.
func bearMembers(bctx topdown.BuiltinContext, rule string, isSet bool, members []*ast.Term) error {
	e := evaluationOf(bctx)
	sum := e.partial[rule]
	for _, t := range members {
		w := e.weigh(t)
		if isSet {
			w.levels = 0 // sets are compared, not unified
		}
		sum = sum.plus(w, 1)
	}
	if e.partial == nil {
		e.partial = map[string]weight{}
	}
	e.partial[rule] = sum
	return budgetOf(bctx.Context).bear(e, sum)
}
