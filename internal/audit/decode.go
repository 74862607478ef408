package audit

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/plainjson"
)

// decode reads a line that stands as Encode writes it: the fields of each object in the order of their declaration, each at most once, no blanks
// between them, no null. It reports false for any other line, and leaves e in any state: Parse then reads the line by encoding/json, which decides. So this
// decoder only saves time. It never decides that a line is no record, and of a line that it reads, encoding/json returns the same event without a
// complaint, nor has checkParams one about the parameters. A test and a fuzz test compare the two. The texts of the event are parts of one copy of the line.
func decode(line []byte, e *Event) bool {
	c := plainjson.Cursor{In: string(line)}
	return eventReader(&c, reflect.ValueOf(e).Elem()) && c.IsEnd()
}

var eventReader = readerOf(reflect.TypeFor[Event]())

// valueReader reads one JSON value into v. False means that encoding/json must.
type valueReader func(c *plainjson.Cursor, v reflect.Value) bool

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

func readNothing(*plainjson.Cursor, reflect.Value) bool { return false }

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
	return func(c *plainjson.Cursor, v reflect.Value) bool {
		if !c.Skip('{') {
			return false
		}
		if c.Skip('}') {
			return true
		}
		for next := 0; ; next++ {
			for next < len(fields) && !c.Has(fields[next].key) {
				next++
			}
			if next == len(fields) { // unknown, out of order, or there twice
				return false
			}
			f := &fields[next]
			if c.At += len(f.key); !f.read(c, v.Field(f.index)) {
				return false
			}
			if !c.Skip(',') {
				return c.Skip('}')
			}
		}
	}
}

func pointerReader(t reflect.Type) valueReader {
	read := readerOf(t.Elem())
	return func(c *plainjson.Cursor, v reflect.Value) bool {
		p := reflect.New(t.Elem())
		v.Set(p)
		return read(c, p.Elem())
	}
}

func sliceReader(t reflect.Type) valueReader {
	read := readerOf(t.Elem())
	return func(c *plainjson.Cursor, v reflect.Value) bool {
		if !c.Skip('[') {
			return false
		}
		if c.Skip(']') {
			v.Set(reflect.MakeSlice(t, 0, 0))
			return true
		}
		for n := 0; ; n++ {
			v.Grow(1)
			v.SetLen(n + 1)
			if !read(c, v.Index(n)) {
				return false
			}
			if !c.Skip(',') {
				return c.Skip(']')
			}
		}
	}
}

func readText(c *plainjson.Cursor, v reflect.Value) bool {
	s, ok := c.Text()
	v.SetString(s)
	return ok
}

func readBool(c *plainjson.Cursor, v reflect.Value) bool {
	isTrue := c.Word("true")
	v.SetBool(isTrue)
	return isTrue || c.Word("false")
}

func readInt(c *plainjson.Cursor, v reflect.Value) bool {
	n, isNegative, ok := c.Number()
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

func readUint(c *plainjson.Cursor, v reflect.Value) bool {
	n, isNegative, ok := c.Number()
	if !ok || isNegative || v.OverflowUint(n) {
		return false
	}
	v.SetUint(n)
	return true
}

func readTime(c *plainjson.Cursor, v reflect.Value) bool {
	begin := c.At
	_, isPlain, ok := c.Quoted()
	if !ok || !isPlain {
		return false
	}
	t, ok := v.Addr().Interface().(*time.Time)
	return ok && t.UnmarshalJSON([]byte(c.In[begin:c.At])) == nil // as encoding/json does
}

func readRaw(c *plainjson.Cursor, v reflect.Value) bool {
	begin := c.At
	if !c.Value() {
		return false
	}
	v.SetBytes([]byte(c.In[begin:c.At]))
	return true
}
