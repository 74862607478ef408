package apiserver

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Bounds of what a record shows of one request: a message may have megabytes.
const (
	maxText    = 1024 // bytes of one string
	maxEntries = 64   // of one list or map
)

// Params returns the request as JSON for the record, with every field under its published name, 64-bit numbers
// as numbers, enums by name, of bytes only how many, and secrets left out; redacted lists those. What the descriptors do not
// know is not there at all. Long texts and lists are cut and say so, so it serves to read, and nothing may be decided by it:
// decide by call.Request.
func Params(call *Call) (params json.RawMessage, redacted []string) {
	p := printer{group: call.Operation.Group, out: make([]byte, 0, 256)}
	p.message(call.Request.ProtoReflect(), "", 0)
	return json.RawMessage(p.out), p.redacted
}

// printer writes messages as JSON.
type printer struct {
	group    string
	out      []byte
	redacted []string
}

func (p *printer) message(m protoreflect.Message, prefix string, depth int) {
	p.out = append(p.out, '{')
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		if i > 0 {
			p.out = append(p.out, ',')
		}
		p.text(string(f.Name()))
		p.out = append(p.out, ':')
		p.field(m, f, prefix+string(f.Name()), depth)
	}
	p.out = append(p.out, '}')
}

func (p *printer) field(m protoreflect.Message, f protoreflect.FieldDescriptor, name string, depth int) {
	switch {
	case isWithheld(p.group, f, depth):
		p.redacted = append(p.redacted, name)
		p.text("[redacted]")
	case f.IsMap():
		p.entries(m.Get(f).Map(), f, name, depth)
	case f.IsList():
		p.list(m.Get(f).List(), f, name, depth)
	case f.Message() != nil && !m.Has(f):
		p.out = append(p.out, "null"...)
	default:
		p.value(m.Get(f), f, name, depth)
	}
}

func (p *printer) list(list protoreflect.List, f protoreflect.FieldDescriptor, name string, depth int) {
	p.out = append(p.out, '[')
	for i := range min(list.Len(), maxEntries) {
		if i > 0 {
			p.out = append(p.out, ',')
		}
		p.value(list.Get(i), f, name, depth)
	}
	if n := list.Len() - maxEntries; n > 0 {
		p.out = append(p.out, ',')
		p.text(fmt.Sprintf("[%d entries cut]", n))
	}
	p.out = append(p.out, ']')
}

// entries writes a map as a list of [key, value]: no request has a map today, and pairs need no order.
func (p *printer) entries(entries protoreflect.Map, f protoreflect.FieldDescriptor, name string, depth int) {
	p.out = append(p.out, '[')
	written := 0
	entries.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		if written > 0 {
			p.out = append(p.out, ',')
		}
		p.out = append(p.out, '[')
		p.value(k.Value(), f.MapKey(), name, depth)
		p.out = append(p.out, ',')
		p.value(v, f.MapValue(), name, depth)
		p.out = append(p.out, ']')
		written++
		return written < maxEntries
	})
	p.out = append(p.out, ']')
}

func (p *printer) value(v protoreflect.Value, f protoreflect.FieldDescriptor, name string, depth int) {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		p.message(v.Message(), name+".", depth+1)
	case protoreflect.BoolKind:
		p.out = strconv.AppendBool(p.out, v.Bool())
	case protoreflect.EnumKind:
		if d := f.Enum().Values().ByNumber(v.Enum()); d != nil {
			p.text(string(d.Name()))
		} else {
			p.out = strconv.AppendInt(p.out, int64(v.Enum()), 10)
		}
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind,
		protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		p.out = strconv.AppendInt(p.out, v.Int(), 10)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		p.out = strconv.AppendUint(p.out, v.Uint(), 10)
	case protoreflect.StringKind:
		p.text(v.String())
	case protoreflect.BytesKind:
		p.text(fmt.Sprintf("[%d bytes]", len(v.Bytes())))
	default: // floating point: JSON has no infinity
		p.text(v.String())
	}
}

func (p *printer) text(s string) {
	quoted, err := json.Marshal(clip(s, maxText))
	if err != nil { // strings always encode; bytes that are no UTF-8 become U+FFFD
		quoted = []byte(`"[not printable]"`)
	}
	p.out = append(p.out, quoted...)
}

// clip cuts s to at most limit bytes between two characters, and says how much is missing.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s[%d bytes cut]", s[:end], len(s)-end)
}
