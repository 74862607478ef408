package copies

import (
	"bytes"
	"slices"
)

// mostDepth is the depth of the deepest field that is used: who.pod.ns.
const mostDepth = 3

// scan calls each for the values of a JSON object and of the objects in it, with their paths and their raw text, both valid until
// it returns. It returns false if the line is no object as the log writes them; values may have been given before.
//
// It goes by structure: a text search would find what a caller wrote into a name. It does not look into arrays, nor into params, where
// a caller may choose names of fields.
//
// Of the objects in the line only those named in within are looked into, all if that is empty.
func scan(line []byte, each func(path, raw []byte), within ...string) bool {
	s := scanner{rest: line, each: each, within: within}
	s.blanks()
	s.object(1)
	s.blanks()
	return !s.failed && len(s.rest) == 0
}

type scanner struct {
	rest   []byte
	failed bool
	path   []byte
	room   [96]byte // for path
	each   func(path, raw []byte)
	within []string
}

// is takes c if it is next.
func (s *scanner) is(c byte) bool {
	if s.failed || len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *scanner) blanks() {
	for len(s.rest) > 0 && (s.rest[0] == ' ' || s.rest[0] == '\t' || s.rest[0] == '\n' || s.rest[0] == '\r') {
		s.rest = s.rest[1:]
	}
}

// object reads an object whose fields lie at a depth.
func (s *scanner) object(depth int) {
	if !s.is('{') {
		s.failed = true
		return
	}
	if s.blanks(); s.is('}') {
		return
	}
	if depth == 1 {
		s.path = s.room[:0]
	}
	parent := len(s.path)
	for !s.failed {
		s.blanks()
		key := s.text()
		s.blanks()
		if s.failed || !s.is(':') || bytes.IndexByte(key, '\\') >= 0 || bytes.IndexByte(key, '.') >= 0 || parent+len(key) >= len(s.room) {
			s.failed = true // the log writes no such names
			return
		}
		if parent > 0 {
			s.path = append(s.path, '.')
		}
		s.path = append(s.path, key[1:len(key)-1]...)
		s.blanks()
		if len(s.rest) > 0 && s.rest[0] == '{' && s.isEntered(depth) {
			s.object(depth + 1)
		} else if raw := s.value(); !s.failed {
			s.each(s.path, raw)
		}
		s.path = s.path[:parent]
		s.blanks()
		if s.is('}') {
			return
		}
		s.failed = s.failed || !s.is(',')
	}
}

// isEntered says that the object at the path is looked into.
func (s *scanner) isEntered(depth int) bool {
	if depth == 1 && len(s.within) > 0 {
		return slices.ContainsFunc(s.within, func(name string) bool { return string(s.path) == name })
	}
	return depth < mostDepth && string(s.path) != "what.params"
}

// text reads a string with its quotes.
func (s *scanner) text() []byte {
	if len(s.rest) == 0 || s.rest[0] != '"' {
		s.failed = true
		return nil
	}
	for end := 1; ; end++ {
		n := bytes.IndexByte(s.rest[end:], '"')
		if n < 0 {
			s.failed = true
			return nil
		}
		end += n
		slashes := 0
		for s.rest[end-1-slashes] == '\\' { // the opening quote ends it at the latest
			slashes++
		}
		if slashes%2 == 0 {
			raw := s.rest[:end+1]
			s.rest = s.rest[end+1:]
			return raw
		}
	}
}

// value reads any value. What is in arrays and objects is passed over by their brackets alone.
func (s *scanner) value() []byte {
	from := s.rest
	for depth := 0; len(s.rest) > 0 && !s.failed; {
		switch s.rest[0] {
		case '"':
			s.text()
		case '{', '[':
			depth++
			s.rest = s.rest[1:]
			continue
		case '}', ']':
			if depth--; depth < 0 {
				s.failed = true
				continue
			}
			s.rest = s.rest[1:]
		default:
			n := 0
			for n < len(s.rest) && !isSpecial(s.rest[n]) {
				n++
			}
			if n == 0 && depth == 0 { // nothing where a value should be
				s.failed = true
				continue
			}
			s.rest = s.rest[max(n, 1):]
		}
		if depth == 0 && !s.failed {
			return from[:len(from)-len(s.rest)]
		}
	}
	s.failed = true
	return nil
}

// isSpecial says that c ends a number or a word.
func isSpecial(c byte) bool {
	switch c {
	case ',', ':', ']', '}', '[', '{', '"', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}
