package audit

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/plainjson"
)

// decode reads a line that stands as Encode writes it: the fields of each object in the order of their declaration, each at most once, no blanks
// between them, no null. It reports false for any other line, and leaves e in any state: Parse then reads the line by encoding/json, which decides. So this
// decoder only saves time. It never decides that a line is no record, and of a line that it reads, encoding/json returns the same event without a
// complaint, nor has checkParams one about the parameters. A test and a fuzz test compare the two. The texts of the event are parts of one copy of the line.
func decode(line []byte, e *Event) bool {
	d := decoding{Cursor: plainjson.Cursor{In: string(line)}}
	return eventReader(&d, reflect.ValueOf(e).Elem()) && d.IsEnd()
}

var eventReader = readerOf(reflect.TypeFor[Event]())

// decoding is the state of reading one line.
type decoding struct {
	plainjson.Cursor
	unwanted Parts   // are read past
	memory   *Memory // for what texts do not hold; nil makes it anew
}

// comes says whether a key of a field comes next. Most do not, which their second character tells.
func (d *decoding) comes(key string) bool {
	return d.At+1 < len(d.In) && d.In[d.At+1] == key[1] && d.Has(key)
}

// valueReader reads one JSON value into v, or past it if v is the zero Value. It reads past what it would read, and nothing else. False means that encoding/json
// must.
type valueReader func(d *decoding, v reflect.Value) bool

// readerOf returns the reader of a type's values. The types of Event and their tags are the only list of fields. A type that is not known here is left to
// encoding/json.
func readerOf(t reflect.Type) valueReader {
	switch t {
	case reflect.TypeFor[time.Time]():
		return readTime
	case reflect.TypeFor[json.RawMessage]():
		return rawReader()
	case reflect.TypeFor[Effect]():
		return readEffect
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
		return intReader(t)
	case reflect.Uint32, reflect.Uint64:
		return uintReader(t)
	case reflect.Pointer:
		return pointerReader(t)
	case reflect.Slice:
		return sliceReader(t)
	case reflect.Struct:
		return structReader(t)
	}
	return readNothing
}

func readNothing(*decoding, reflect.Value) bool { return false }

// field is a field of a struct.
type field struct {
	key   string // its name as it stands in a line, with quotes and colon
	index int
	part  Parts // that it is
	read  valueReader
}

func structReader(t reflect.Type) valueReader {
	var fields []field
	needed := -1 // the field without which check refuses a record
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || f.Anonymous || !f.IsExported() || strings.Contains(options, "string") {
			return readNothing
		}
		if f.Type == reflect.TypeFor[Effect]() {
			needed = i
		}
		fields = append(fields, field{`"` + name + `":`, i, partOf(f.Type), readerOf(f.Type)})
	}
	return func(d *decoding, v reflect.Value) bool {
		if !d.Skip('{') {
			return false
		}
		isWhole := v.IsValid() || needed < 0 // check does not see what was read past
		if d.Skip('}') {
			return isWhole
		}
		for next := 0; ; next++ {
			for next < len(fields) && !d.comes(fields[next].key) {
				next++
			}
			if next == len(fields) { // unknown, out of order, or there twice
				return false
			}
			f := &fields[next]
			var into reflect.Value
			if v.IsValid() && f.part&d.unwanted == 0 {
				into = v.Field(f.index)
			}
			if d.At += len(f.key); !f.read(d, into) {
				return false
			}
			isWhole = isWhole || next == needed
			if !d.Skip(',') {
				return isWhole && d.Skip('}')
			}
		}
	}
}

func pointerReader(t reflect.Type) valueReader {
	read, slot := readerOf(t.Elem()), newSlot()
	return func(d *decoding, v reflect.Value) bool {
		if !v.IsValid() {
			return read(d, v)
		}
		p := d.memory.pointer(slot, t.Elem())
		p.Elem().SetZero()
		v.Set(p)
		return read(d, p.Elem())
	}
}

func sliceReader(t reflect.Type) valueReader {
	read, slot := readerOf(t.Elem()), newSlot()
	return func(d *decoding, v reflect.Value) bool {
		if !d.Skip('[') {
			return false
		}
		if d.Skip(']') {
			if v.IsValid() {
				v.Set(reflect.MakeSlice(t, 0, 0))
			}
			return true
		}
		var list, entry reflect.Value
		if v.IsValid() {
			list = d.memory.pointer(slot, t).Elem()
		}
		memory := d.memory
		d.memory = nil // which has one place for what all entries may have
		defer func() { d.memory = memory }()
		for n := 0; ; n++ {
			if v.IsValid() {
				list.SetLen(n)
				list.Grow(1)
				list.SetLen(n + 1)
				entry = list.Index(n)
				entry.SetZero()
			}
			if !read(d, entry) {
				return false
			}
			if !d.Skip(',') {
				if v.IsValid() {
					v.Set(list)
				}
				return d.Skip(']')
			}
		}
	}
}

func readText(d *decoding, v reflect.Value) bool {
	if !v.IsValid() {
		return d.SkipText()
	}
	s, ok := d.Text()
	v.SetString(s)
	return ok
}

// readEffect refuses what checkWords does, which does not see a decision that was read past.
func readEffect(d *decoding, v reflect.Value) bool {
	s, ok := d.Text()
	if v.IsValid() {
		v.SetString(s)
		return ok
	}
	return ok && slices.Contains(effects, Effect(s))
}

func readBool(d *decoding, v reflect.Value) bool {
	isTrue := d.Word("true")
	if v.IsValid() {
		v.SetBool(isTrue)
	}
	return isTrue || d.Word("false")
}

func intReader(t reflect.Type) valueReader {
	return func(d *decoding, v reflect.Value) bool {
		n, isNegative, ok := d.Number()
		i := int64(n) // #nosec G115 -- has at most 18 digits
		if isNegative {
			i = -i
		}
		if !ok || t.OverflowInt(i) {
			return false
		}
		if v.IsValid() {
			v.SetInt(i)
		}
		return true
	}
}

func uintReader(t reflect.Type) valueReader {
	return func(d *decoding, v reflect.Value) bool {
		n, isNegative, ok := d.Number()
		if !ok || isNegative || t.OverflowUint(n) {
			return false
		}
		if v.IsValid() {
			v.SetUint(n)
		}
		return true
	}
}

// readTime refuses a time that check refuses, which does not see one that was read past.
func readTime(d *decoding, v reflect.Value) bool {
	begin := d.At
	raw, isPlain, ok := d.Quoted()
	if !ok || !isPlain {
		return false
	}
	at, ok := plainTime(raw)
	if !ok {
		at, ok = anyTime(d.In[begin:d.At])
	}
	if !ok {
		return false
	}
	if !v.IsValid() {
		return isTime(at)
	}
	t, ok := v.Addr().Interface().(*time.Time)
	*t = at
	return ok
}

// anyTime reads a time as encoding/json does.
func anyTime(quoted string) (t time.Time, ok bool) {
	err := t.UnmarshalJSON([]byte(quoted))
	return t, err == nil
}

// plainTime reads a time of the form 2006-01-02T15:04:05.999999999Z. Every other one is left to package time.
func plainTime(raw string) (time.Time, bool) {
	const form = "0000-00-00T00:00:00"
	if len(raw) <= len(form) || len(raw) > len(form)+len(".000000000Z") || raw[len(raw)-1] != 'Z' {
		return time.Time{}, false
	}
	var parts [6]int // year to second
	at := 0
	for i := range len(form) {
		switch c := raw[i]; {
		case form[i] != '0' && c != form[i]:
			return time.Time{}, false
		case form[i] != '0':
			at++
		case c < '0' || c > '9':
			return time.Time{}, false
		default:
			parts[at] = 10*parts[at] + int(c-'0')
		}
	}
	nano, ok := fraction(raw[len(form) : len(raw)-1])
	if !ok || parts[1] < 1 || parts[1] > 12 || parts[2] < 1 || parts[3] > 23 || parts[4] > 59 || parts[5] > 59 {
		return time.Time{}, false
	}
	t := time.Date(parts[0], time.Month(parts[1]), parts[2], parts[3], parts[4], parts[5], nano, time.UTC)
	return t, parts[2] <= 28 || t.Day() == parts[2] // there is such a day in the month
}

// fraction reads nothing, or a point and one to nine digits, as nanoseconds.
func fraction(raw string) (nano int, ok bool) {
	if raw == "" {
		return 0, true
	}
	if raw[0] != '.' || len(raw) == 1 {
		return 0, false
	}
	for i := 1; i < len(".000000000"); i++ {
		digit := byte('0')
		if i < len(raw) {
			digit = raw[i]
		}
		if digit < '0' || digit > '9' {
			return 0, false
		}
		nano = 10*nano + int(digit-'0')
	}
	return nano, true
}

func rawReader() valueReader {
	slot := newSlot()
	return func(d *decoding, v reflect.Value) bool {
		begin := d.At
		if !d.Value() {
			return false
		}
		if v.IsValid() {
			into := d.memory.pointer(slot, reflect.TypeFor[[]byte]())
			b, ok := into.Interface().(*[]byte)
			if !ok {
				return false
			}
			*b = append((*b)[:0], d.In[begin:d.At]...)
			v.SetBytes(*b)
		}
		return true
	}
}
