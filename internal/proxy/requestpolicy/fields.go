package requestpolicy

import (
	"fmt"
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// maxDepth bounds messages within messages, as package apiserver does.
const maxDepth = 4

// shape says what of a message a policy sees.
type shape struct{ fields []field }

type field struct {
	protoreflect.FieldDescriptor
	key   *ast.Term
	shown string // "request.target_portal.target_address"
	in    *shape // of a message
}

// shapeKey is a request type of a group: what a text is depends on both.
type shapeKey struct {
	group string
	of    protoreflect.MessageDescriptor
}

// shapes remembers a shape for each type. There are as many as request types in this program.
type shapes struct{ known sync.Map }

func (s *shapes) of(group string, m protoreflect.Message) (*shape, error) {
	key := shapeKey{group, m.Descriptor()}
	if known, ok := s.known.Load(key); ok {
		return known.(*shape), nil //nolint:errcheck // nothing else is stored
	}
	full := m.New()
	if err := fill(full, 0); err != nil {
		return nil, err
	}
	made := newShape(m.Descriptor(), withheld(group, full), "")
	s.known.Store(key, made)
	return made, nil
}

// withheld asks what the record of a call withholds, so that a policy never sees what the log may not hold.
func withheld(group string, full protoreflect.Message) []string {
	_, redacted := apiserver.Params(&apiserver.Call{Operation: &apiserver.Operation{Group: group}, Request: full.Interface()})
	return redacted
}

// fill sets every message of a message, since a record names nothing in those that are not set.
func fill(m protoreflect.Message, depth int) error {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.IsMap():
			return fmt.Errorf("%s is a map, which policies cannot be shown", f.FullName())
		case f.Message() == nil:
		case depth == maxDepth:
			return fmt.Errorf("%s is nested deeper than %d", f.FullName(), maxDepth)
		case f.IsList():
			if err := fill(m.Mutable(f).List().AppendMutable().Message(), depth+1); err != nil {
				return err
			}
		default:
			if err := fill(m.Mutable(f).Message(), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func newShape(m protoreflect.MessageDescriptor, withheld []string, prefix string) *shape {
	s := &shape{}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		path := prefix + string(f.Name())
		if slices.Contains(withheld, path) {
			continue // it is absent, so that nothing can be learnt by comparing
		}
		one := field{FieldDescriptor: f, key: ast.StringTerm(string(f.Name())), shown: "request." + path}
		if f.Message() != nil {
			one.in = newShape(f.Message(), withheld, path+".")
		}
		s.fields = append(s.fields, one)
	}
	return s
}
