package policy

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// of infers the type of a value. It is nil where it is not known yet.
func (in *inference) of(s *scope, v ast.Value) types.Type {
	switch x := v.(type) {
	case *ast.Array:
		static := make([]types.Type, 0, x.Len())
		x.Foreach(func(e *ast.Term) { static = append(static, in.of(s, e.Value)) })
		return in.bounded(types.NewArray(static, nil))
	case ast.Set:
		var t types.Type
		x.Foreach(func(e *ast.Term) { t = in.or(t, in.of(s, e.Value)) })
		return in.bounded(types.NewSet(t))
	case ast.Object:
		return in.object(s, x)
	case *ast.ArrayComprehension:
		return in.closure(s, x, x.Body, func(s *scope) types.Type { return types.NewArray(nil, in.of(s, x.Term.Value)) })
	case *ast.SetComprehension:
		return in.closure(s, x, x.Body, func(s *scope) types.Type { return types.NewSet(in.of(s, x.Term.Value)) })
	case *ast.ObjectComprehension:
		return in.closure(s, x, x.Body, func(s *scope) types.Type {
			return types.NewObject(nil, types.NewDynamicProperty(in.of(s, x.Key.Value), in.of(s, x.Value.Value)))
		})
	case ast.Ref:
		return in.ref(s, x)
	case ast.Var:
		return s.get(x)
	case ast.Null:
		return types.Nl
	case ast.Boolean:
		return types.B
	case ast.Number:
		return types.N
	case ast.String, *ast.TemplateString:
		return types.S
	}
	return nil
}

func (in *inference) object(s *scope, x ast.Object) types.Type {
	var static []*types.StaticProperty
	var dynamic *types.DynamicProperty
	x.Foreach(func(k, v *ast.Term) {
		t := in.of(s, v.Value)
		if ast.IsConstant(k.Value) {
			if key, err := ast.JSON(k.Value); err == nil {
				static = append(static, types.NewStaticProperty(key, t))
				return
			}
		}
		dynamic = types.NewDynamicProperty(in.of(s, k.Value), t)
	})
	return in.bounded(types.NewObject(static, dynamic))
}

func (in *inference) closure(s *scope, x ast.Value, body ast.Body, value func(*scope) types.Type) types.Type {
	if t, ok := in.closures[x]; ok {
		return t
	}
	in.depth++
	t := in.bounded(value(in.body(s, body)))
	in.depth--
	in.closures[x] = t
	return t
}

// ref infers the type of what a reference leads to, and of the variables in it that have none yet.
func (in *inference) ref(s *scope, r ast.Ref) types.Type {
	if !ast.RootDocumentNames.Contains(r[0]) {
		return in.selected(s, in.of(s, r[0].Value), r[1:])
	}
	for outer := s; outer != nil; outer = outer.next {
		if t, ok := in.lookUp(outer.replaced, s, r); ok {
			return t
		}
	}
	if t, ok := in.lookUp(in.documents, s, r); ok {
		return t
	}
	in.strays(in.documents, s, r, 0)
	return in.selected(s, types.A, r[1:])
}

// strays counts the steps of the checker at a reference to a document that no rule makes, from part i on, which belongs below n: from the first part that is not
// there it looks for the next one below each that is.
func (in *inference) strays(n *typeTree, s *scope, r ast.Ref, i int) {
	for ; i < len(r) && in.fault == nil; i++ {
		child := n.children[r[i].Value.String()]
		switch {
		case child != nil:
		case i > 0 && (n.value != nil || !ast.IsConstant(r[i].Value)):
			in.selected(s.inner(), in.extent(n), r[i:])
			return
		default:
			if _, isName := r[i].Value.(ast.String); !isName && i < 3 { // in place of a package or a rule
				in.tell(len(n.children))
			}
			in.take(len(n.children))
			for _, other := range n.children {
				if i > 0 && i+1 < len(r) {
					in.strays(other, s, r, i+1)
				}
			}
			return
		}
		n = child
	}
}

func (in *inference) lookUp(n *typeTree, s *scope, r ast.Ref) (types.Type, bool) {
	for i, term := range r {
		if n == nil {
			return nil, false
		}
		child := n.children[term.Value.String()]
		if child == nil && i > 0 && (n.value != nil || !ast.IsConstant(term.Value)) {
			return in.selected(s, in.extent(n), r[i:]), true
		}
		n = child
	}
	return in.extent(n), n != nil
}

func (in *inference) selected(s *scope, t types.Type, path ast.Ref) types.Type {
	for _, term := range path {
		if t == nil {
			return nil
		}
		if key, err := ast.JSON(term.Value); err == nil && ast.IsScalar(term.Value) {
			in.tell(told(t, func(o *types.Object) bool { return types.Select(o, key) == nil }))
			t = in.bounded(types.Select(t, key))
			continue
		}
		if in.spend(t); in.fault != nil {
			return types.A
		}
		if known := in.of(s, term.Value); known != nil && types.Keys(t) != nil && !fits(known, types.Keys(t)) {
			in.tell(told(t, func(*types.Object) bool { return true }))
		}
		in.bind(s, term, in.bounded(types.Keys(t)), false)
		t = in.bounded(types.Values(t))
	}
	return t
}

// typeTree holds the types of documents by path.
type typeTree struct {
	value    types.Type
	children map[string]*typeTree
	key      any // as JSON has it
}

func (n *typeTree) at(path ast.Ref) *typeTree {
	for _, term := range path {
		name := term.Value.String()
		if n.children == nil {
			n.children = map[string]*typeTree{}
		}
		if n.children[name] == nil {
			key, err := ast.JSON(term.Value)
			if err != nil || !ast.IsScalar(term.Value) {
				key = name
			}
			n.children[name] = &typeTree{key: key}
		}
		n = n.children[name]
	}
	return n
}

// extent is the type of all that is at and below a node.
func (in *inference) extent(n *typeTree) types.Type {
	if n == nil {
		return nil
	}
	if len(n.children) == 0 {
		return n.value
	}
	var static []*types.StaticProperty
	for _, child := range n.children {
		static = append(static, types.NewStaticProperty(child.key, in.extent(child)))
	}
	return in.or(n.value, in.bounded(types.NewObject(static, types.NewDynamicProperty(types.S, types.A))))
}
