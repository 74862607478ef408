package requestpolicy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Bounds of what a policy is shown. They are those of the record, but what is longer is not cut: a policy that
// looks for the end of a path must not be shown another end. Windows takes paths of 260 characters from callers.
const (
	maxText    = 1024 // bytes of one text
	maxEntries = 64   // of one list
)

// Reasons for which a call cannot be shown to a policy.
var (
	errTooLong     = fmt.Errorf("has more than %d bytes", maxText)
	errNotText     = errors.New("is not UTF-8")
	errTooMany     = fmt.Errorf("has more than %d entries", maxEntries)
	errNotANumber  = errors.New("is not a finite number")
	errNoOperation = errors.New("the call has no operation")
)

// builder makes an input. It keeps the first fault, and what it made is worth nothing then.
type builder struct{ err error }

func (b *builder) fault(path string, err error) *ast.Term {
	if b.err == nil {
		b.err = fmt.Errorf("%s %w", path, err)
	}
	return null
}

// text is a text that a policy sees whole or not at all.
func (b *builder) text(path, s string) *ast.Term {
	switch {
	case len(s) > maxText:
		return b.fault(path, errTooLong)
	case !utf8.ValidString(s):
		return b.fault(path, errNotText)
	}
	return ast.StringTerm(s)
}

// number takes digits, so that 64 bits stay exact. As text a number would compare greater than every number.
func number(digits string) *ast.Term { return ast.NumberTerm(json.Number(digits)) }

func (b *builder) message(s *shape, m protoreflect.Message) *ast.Term {
	items := make([]item, len(s.fields))
	for i := range s.fields {
		f := &s.fields[i]
		items[i] = item{f.key, b.field(f, m)}
	}
	return ast.ObjectTerm(items...)
}

func (b *builder) field(f *field, m protoreflect.Message) *ast.Term {
	switch {
	case f.IsList():
		return b.list(f, m.Get(f.FieldDescriptor).List())
	case f.in != nil && !m.Has(f.FieldDescriptor):
		return null
	}
	return b.value(f, m.Get(f.FieldDescriptor))
}

func (b *builder) list(f *field, list protoreflect.List) *ast.Term {
	n := list.Len()
	if n > maxEntries {
		return b.fault(f.shown, errTooMany)
	}
	terms := make([]*ast.Term, n)
	for i := range n {
		terms[i] = b.value(f, list.Get(i))
	}
	return ast.ArrayTerm(terms...)
}

func (b *builder) value(f *field, v protoreflect.Value) *ast.Term {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return b.message(f.in, v.Message())
	case protoreflect.BoolKind:
		return ast.InternedTerm(v.Bool())
	case protoreflect.EnumKind:
		if known := f.Enum().Values().ByNumber(v.Enum()); known != nil {
			return ast.StringTerm(string(known.Name()))
		}
		return number(strconv.FormatInt(int64(v.Enum()), 10))
	case protoreflect.StringKind:
		return b.text(f.shown, v.String())
	case protoreflect.BytesKind:
		return number(strconv.Itoa(len(v.Bytes())))
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		if math.IsInf(v.Float(), 0) || math.IsNaN(v.Float()) {
			return b.fault(f.shown, errNotANumber)
		}
		return number(strconv.FormatFloat(v.Float(), 'g', -1, 64))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return number(strconv.FormatUint(v.Uint(), 10))
	default:
		return number(strconv.FormatInt(v.Int(), 10))
	}
}
