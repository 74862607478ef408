package policy

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Selector names fields of the input, as many as most rules ask for before anything else. A decision that follows from them alone, for the rules that are active, is
// made once and remembered: OPA is not asked again. See [reading] for when that is so.
type Selector struct {
	// Texts are the fields that are told by their value, such as the operation of a call. An input where one is no string is always evaluated.
	Texts [2]string
	// Types are the fields that are told by their type alone, as type_name calls it. An input where one has another type is always evaluated.
	Types map[string]string
}

// selection is the values of the texts of an input.
type selection [2]string

// A text may be one that a client chose: more selections, or longer texts, are evaluated each time.
const (
	maxSelections    = 512
	maxSelectionText = 128
)

// settled remembers the decisions of one snapshot that follow from the selection alone.
type settled struct {
	texts   [2]*ast.Term
	types   []field
	follows func(selection) bool // whether the decision follows from the selection alone
	known   sync.Map             // selection: *slot
	count   atomic.Int32
}

type field struct {
	name *ast.Term
	kind string
}

// slot is what is known of one selection.
type slot struct {
	isOpen   bool // each input has to be evaluated
	decision atomic.Pointer[Decision]
}

func newSettled(s *Selector, follows func(selection) bool) *settled {
	out := &settled{texts: [2]*ast.Term{ast.StringTerm(s.Texts[0]), ast.StringTerm(s.Texts[1])}, follows: follows}
	for _, name := range slices.Sorted(maps.Keys(s.Types)) {
		out.types = append(out.types, field{ast.StringTerm(name), s.Types[name]})
	}
	return out
}

// find returns where the decision about an input is remembered, or nil if it has to be made from all of the input.
func (s *settled) find(input ast.Value) *slot {
	if s == nil {
		return nil
	}
	chosen, ok := s.selectionOf(input)
	if !ok {
		return nil
	}
	known, isKnown := s.known.Load(chosen)
	if !isKnown {
		if s.count.Load() >= maxSelections {
			return nil
		}
		own := selection{strings.Clone(chosen[0]), strings.Clone(chosen[1])}
		if known, isKnown = s.known.LoadOrStore(own, &slot{isOpen: !s.follows(own)}); !isKnown {
			s.count.Add(1)
		}
	}
	found, ok := known.(*slot)
	if !ok || found.isOpen {
		return nil
	}
	return found
}

// selectionOf returns the texts of an input that has them and the types.
func (s *settled) selectionOf(input ast.Value) (out selection, ok bool) {
	object, ok := input.(ast.Object)
	if !ok {
		return out, false
	}
	for i, name := range s.texts {
		value := object.Get(name)
		if value == nil {
			return out, false
		}
		text, ok := value.Value.(ast.String)
		if !ok || len(text) > maxSelectionText {
			return out, false
		}
		out[i] = string(text)
	}
	for _, f := range s.types {
		if value := object.Get(f.name); value == nil || ast.ValueName(value.Value) != f.kind {
			return out, false
		}
	}
	return out, true
}

// remembered returns the decision that was made before.
func (s *slot) remembered() (Decision, bool) {
	if s == nil {
		return Decision{}, false
	}
	d := s.decision.Load()
	if d == nil {
		return Decision{}, false
	}
	return d.clone(), true
}

// remember keeps a decision that was made from an input of this selection, unless advice is missing from it: that may be for want of time.
func (s *slot) remember(d Decision) {
	if s == nil || d.lacksAdvice() {
		return
	}
	own := d.clone()
	s.decision.Store(&own)
}
