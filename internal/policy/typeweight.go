package policy

import (
	"reflect"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// OPA infers a type for every rule and variable. Types share their parts, so x1 := [x0, x0], x2 := [x1, x1] and so on double
// in size with each rule at no cost. The type checker then compares and prints them as if nothing were shared, which takes time
// exponential in the length of the text and cannot be interrupted. boundTypes runs before it: it infers the same types or
// larger ones, and stops at the first that is too large to be compared.
const (
	// maxTypeWeight bounds the weight of one type, see inference.weigh. The built-in policies reach 1,871, and their
	// tests 15,257.
	maxTypeWeight = 1 << 20
	// maxTypeWork bounds the sum of the weights of all types that are compared, which takes about a microsecond for each where
	// objects have many keys. The built-in policies stay below 100,000, and with their tests they reach 721,232.
	maxTypeWork = 4 << 20
	// listFactor is how much more a key costs that the checker lists than one that it compares: for each reference that none of the keys of an object fits,
	// it sorts all of them and keeps them until it ends.
	listFactor = 64
)

// spend counts the weight of the types that the checker compares here, as often as it looks at the closures around them.
func (in *inference) spend(compared ...types.Type) {
	steps := 0
	for _, t := range compared {
		steps += in.weigh(t)
	}
	in.take(steps)
}

// tell counts keys that the checker lists.
func (in *inference) tell(keys int) {
	if in.take(0); in.work+listFactor*keys > maxTypeWork {
		in.refuse("up to here too many references are to keys that large objects do not have")
	}
	in.take(listFactor * keys)
}

// take counts steps of the checker, as often as it looks at the closures around them.
func (in *inference) take(steps int) {
	for range in.depth {
		steps *= closureFactor
	}
	if in.work += steps; in.work > maxTypeWork {
		in.refuse("the types of the values up to here are too large together: take arrays, sets and objects that hold others apart")
	}
}

func (in *inference) refuse(message string) {
	if in.fault == nil {
		in.fault = ast.NewError(CodeLimit, in.at, "%s", message)
	}
}

func (in *inference) or(a, b types.Type) types.Type { return in.bounded(types.Or(a, b)) }

// bounded is t, or any where t is too large.
func (in *inference) bounded(t types.Type) types.Type {
	if in.fault != nil {
		return types.A
	}
	if w := in.weigh(t); w > maxTypeWeight {
		in.refuse("the type of a value is too large here: arrays, sets or objects hold the same large ones again and again")
		return types.A
	}
	return t
}

// weigh bounds the steps of comparing t with another type. OPA compares the parts of arrays and objects in both directions,
// and each alternative with each other.
func (in *inference) weigh(t types.Type) int {
	switch t := t.(type) {
	case types.Any:
		return in.weighAny(t)
	case *types.NamedType:
		return in.weigh(t.Type)
	case *types.Array, *types.Set, *types.Object, *types.Function:
		if w, ok := in.weights[t]; ok {
			return w
		}
		w := 1
		for _, part := range parts(t) {
			w += 2 * in.weigh(part)
		}
		in.weights[t] = w
		return w
	}
	return 1
}

// weighAny counts each alternative as often as there are others of its kind: those of different kinds are told apart at once.
func (in *inference) weighAny(t types.Any) int {
	number, sum := map[reflect.Type]int{}, map[reflect.Type]int{}
	for _, one := range t {
		kind := reflect.TypeOf(one)
		number[kind]++
		sum[kind] += in.weigh(one)
	}
	w := 1 + len(t)
	for kind, n := range number {
		w += 2 * n * sum[kind]
	}
	return w
}

// told is how many keys the checker lists where a reference fits none of them. Those of objects count of which that may be so.
func told(t types.Type, mayBe func(*types.Object) bool) (n int) {
	switch t := t.(type) {
	case *types.NamedType:
		return told(t.Type, mayBe)
	case types.Any:
		for _, one := range t {
			n += told(one, mayBe)
		}
	case *types.Object:
		if mayBe(t) {
			return len(t.StaticProperties())
		}
	}
	return n
}

// fits says that values of two types may be the same, as far as that is simple to say.
func fits(a, b types.Type) bool {
	if several, ok := a.(types.Any); ok {
		return len(several) == 0 || slices.ContainsFunc(several, func(one types.Type) bool { return fits(one, b) })
	}
	if _, ok := b.(types.Any); ok {
		return fits(b, a)
	}
	return types.Compare(a, b) == 0
}

// parts are the types within an array, a set, an object or a function.
func parts(t types.Type) []types.Type {
	var out []types.Type
	switch t := t.(type) {
	case *types.Array:
		for i := range t.Len() {
			out = append(out, t.Select(i))
		}
		return append(out, t.Dynamic())
	case *types.Set:
		return []types.Type{t.Of()}
	case *types.Object:
		for _, p := range t.StaticProperties() {
			out = append(out, p.Value)
		}
		if p := t.DynamicProperties(); p != nil {
			out = append(out, p.Key, p.Value)
		}
	case *types.Function:
		return append(t.FuncArgs().Args, t.Result())
	}
	return out
}
