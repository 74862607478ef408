package hunt

import (
	"slices"

	"github.com/pipeguard/pipeguard/internal/audit/plainjson"
)

// scanner makes Fields of a JSON object as Flatten does, but only those that are asked for, and only of a text that package plainjson reads. It uses the same
// memory for each object.
type scanner struct {
	plainjson.Cursor
	asked  map[string]string // by itself, so that a name that is put together needs no memory
	name   []byte            // of the place that is read
	fields Fields
}

func newScanner(names []string) scanner {
	s := scanner{asked: map[string]string{}, fields: Fields{}}
	for _, name := range names {
		if !isDerived(name) {
			s.asked[name] = name
		}
	}
	return s
}

// scan returns the fields that are asked for, valid until the next call. If it is not ok, Flatten must read the text.
func (s *scanner) scan(doc string) (f Fields, ok bool) {
	for name, values := range s.fields {
		s.fields[name] = values[:0]
	}
	s.In, s.At, s.name = doc, 0, s.name[:0]
	return s.fields, s.Skip('{') && s.object(0) && s.IsEnd()
}

// Bounds of an object that is scanned.
const (
	maxScanDepth = 8
	maxScanNames = 32 // each is compared with those before it: of two with one name, Flatten has one
)

func (s *scanner) object(depth int) bool {
	if s.Skip('}') {
		return true
	}
	var names [maxScanNames]string
	outer := len(s.name)
	for n := range names {
		name, isPlain, ok := s.Quoted()
		if !ok || !isPlain || !s.Skip(':') || slices.Contains(names[:n], name) {
			return false
		}
		names[n] = name
		if outer > 0 {
			s.name = append(s.name, '.')
		}
		s.name = append(s.name, name...)
		if !s.value(depth + 1) {
			return false
		}
		if s.name = s.name[:outer]; !s.Skip(',') {
			return s.Skip('}')
		}
	}
	return false
}

func (s *scanner) array(depth int) bool {
	if s.Skip(']') {
		return true
	}
	for s.value(depth + 1) {
		if !s.Skip(',') {
			return s.Skip(']')
		}
	}
	return false
}

func (s *scanner) value(depth int) bool {
	begin := s.At
	switch {
	case depth > maxScanDepth:
		return false
	case s.Skip('{'):
		return s.object(depth)
	case s.Skip('['):
		return s.array(depth)
	case s.Has(`"`):
		text, ok := s.Text()
		s.add(text)
		return ok
	case s.Word("null"):
		return true
	case s.Word("true"), s.Word("false"):
		s.add(s.In[begin:s.At])
		return true
	}
	_, _, ok := s.Number()
	s.add(s.In[begin:s.At])
	return ok
}

func (s *scanner) add(value string) {
	if name, isAsked := s.asked[string(s.name)]; isAsked {
		s.fields[name] = append(s.fields[name], value)
	}
}
