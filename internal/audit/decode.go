package audit

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// decode reads a line that stands as Encode writes it: the fields of each object in the order of their declaration, each at most once, no blanks
// between them, no null. It reports false for any other line, and leaves e in any state: Parse then reads the line by encoding/json, which decides. So this
// decoder only saves time. It never decides that a line is no record, and of a line that it reads, encoding/json returns the same event without a
// complaint, nor has checkParams one about the parameters. A test and a fuzz test compare the two. The texts of the event are parts of one copy of the line.
func decode(line []byte, e *Event) bool {
	c := cursor{in: string(line)}
	return eventReader(&c, reflect.ValueOf(e).Elem()) && c.at == len(line)
}

var eventReader = readerOf(reflect.TypeFor[Event]())

// valueReader reads one JSON value into v. False means that encoding/json must.
type valueReader func(c *cursor, v reflect.Value) bool

// readerOf returns the reader of a type's values. The types of Event and their tags are the only list of fields. A type that is not known here is left to
// encoding/json.
func readerOf(t reflect.Type) valueReader {
	switch t {
	case reflect.TypeFor[time.Time]():
		return readTime
	case reflect.TypeFor[json.RawMessage]():
		return readRaw
	}
	if p := reflect.PointerTo(t); p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return readNothing
	}
	switch t.Kind() {
	case reflect.String:
		return readText
	case reflect.Bool:
		return readBool
	case reflect.Int, reflect.Int64:
		return readInt
	case reflect.Uint32, reflect.Uint64:
		return readUint
	case reflect.Pointer:
		return pointerReader(t)
	case reflect.Slice:
		return sliceReader(t)
	case reflect.Struct:
		return structReader(t)
	}
	return readNothing
}

func readNothing(*cursor, reflect.Value) bool { return false }

// field is a field of a struct.
type field struct {
	key   string // its name as it stands in a line, with quotes and colon
	index int
	read  valueReader
}

func structReader(t reflect.Type) valueReader {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || f.Anonymous || !f.IsExported() || strings.Contains(options, "string") {
			return readNothing
		}
		fields = append(fields, field{`"` + name + `":`, i, readerOf(f.Type)})
	}
	return func(c *cursor, v reflect.Value) bool {
		if !c.skip('{') {
			return false
		}
		if c.skip('}') {
			return true
		}
		for next := 0; ; next++ {
			for next < len(fields) && !c.has(fields[next].key) {
				next++
			}
			if next == len(fields) { // unknown, out of order, or there twice
				return false
			}
			f := &fields[next]
			if c.at += len(f.key); !f.read(c, v.Field(f.index)) {
				return false
			}
			if !c.skip(',') {
				return c.skip('}')
			}
		}
	}
}

func pointerReader(t reflect.Type) valueReader {
	read := readerOf(t.Elem())
	return func(c *cursor, v reflect.Value) bool {
		p := reflect.New(t.Elem())
		v.Set(p)
		return read(c, p.Elem())
	}
}

func sliceReader(t reflect.Type) valueReader {
	read := readerOf(t.Elem())
	return func(c *cursor, v reflect.Value) bool {
		if !c.skip('[') {
			return false
		}
		if c.skip(']') {
			v.Set(reflect.MakeSlice(t, 0, 0))
			return true
		}
		for n := 0; ; n++ {
			v.Grow(1)
			v.SetLen(n + 1)
			if !read(c, v.Index(n)) {
				return false
			}
			if !c.skip(',') {
				return c.skip(']')
			}
		}
	}
}

func readText(c *cursor, v reflect.Value) bool {
	s, ok := c.text()
	v.SetString(s)
	return ok
}

func readBool(c *cursor, v reflect.Value) bool {
	isTrue := c.skipWord("true")
	v.SetBool(isTrue)
	return isTrue || c.skipWord("false")
}

func readInt(c *cursor, v reflect.Value) bool {
	n, isNegative, ok := c.number()
	i := int64(n) // #nosec G115 -- has at most 18 digits
	if isNegative {
		i = -i
	}
	if !ok || v.OverflowInt(i) {
		return false
	}
	v.SetInt(i)
	return true
}

func readUint(c *cursor, v reflect.Value) bool {
	n, isNegative, ok := c.number()
	if !ok || isNegative || v.OverflowUint(n) {
		return false
	}
	v.SetUint(n)
	return true
}

func readTime(c *cursor, v reflect.Value) bool {
	begin := c.at
	_, isPlain, ok := c.quoted()
	if !ok || !isPlain {
		return false
	}
	t, ok := v.Addr().Interface().(*time.Time)
	return ok && t.UnmarshalJSON([]byte(c.in[begin:c.at])) == nil // as encoding/json does
}

func readRaw(c *cursor, v reflect.Value) bool {
	begin := c.at
	if !c.value(0) {
		return false
	}
	v.SetBytes([]byte(c.in[begin:c.at]))
	return true
}
