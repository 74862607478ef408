package apiserver

import (
	"fmt"
	"math/rand/v2"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// fill gives every field of m a value that no other field has.
func fill(m proto.Message) {
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		fillField(m, fields.Get(i))
	}
}

func fillField(m proto.Message, f protoreflect.FieldDescriptor) {
	n := int(f.Number())
	switch {
	case f.IsMap():
		entries := m.ProtoReflect().Mutable(f).Map()
		for i := range 3 {
			key := protoreflect.ValueOfUint32(uint32(100 + 10*n + i))
			if f.MapKey().Kind() == protoreflect.StringKind {
				key = protoreflect.ValueOfString(fmt.Sprint(100 + 10*n + i))
			}
			value := entries.NewValue()
			if f.MapValue().Message() != nil {
				fill(value.Message().Interface())
			} else {
				value = distinct(f.MapValue(), 10*n+i)
			}
			entries.Set(key.MapKey(), value)
		}
	case f.IsList():
		list := m.ProtoReflect().Mutable(f).List()
		for i := range 3 {
			if f.Message() != nil {
				fill(list.AppendMutable().Message().Interface())
				continue
			}
			list.Append(distinct(f, 10*n+i))
		}
	case f.Message() != nil:
		fill(m.ProtoReflect().Mutable(f).Message().Interface())
	default:
		m.ProtoReflect().Set(f, distinct(f, n))
	}
}

// distinct returns a value for a field; texts are such that they are numbers where a number is read from them.
func distinct(f protoreflect.FieldDescriptor, n int) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		if f.Name() == "disk_id" || f.Name() == "diskID" {
			return protoreflect.ValueOfString(fmt.Sprint(100 + n))
		}
		return protoreflect.ValueOfString(fmt.Sprintf("%s %d", f.Name(), n))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(f.Enum().Values().Get(f.Enum().Values().Len() - 1).Number())
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(1<<40 + int64(n))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(1<<31 + uint32(n))
	}
	panic("no value for " + string(f.FullName()))
}

// scramble gives fields values that nobody would send in earnest.
func scramble(m proto.Message, r *rand.Rand) {
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case r.IntN(4) == 0:
		case f.IsMap():
			entries := m.ProtoReflect().Mutable(f).Map()
			for range r.IntN(10) {
				value := entries.NewValue()
				if f.MapValue().Message() != nil {
					scramble(value.Message().Interface(), r)
				} else {
					value = strange(f.MapValue(), r)
				}
				entries.Set(strange(f.MapKey(), r).MapKey(), value)
			}
		case f.IsList():
			list := m.ProtoReflect().Mutable(f).List()
			for range r.IntN(100) {
				if f.Message() != nil {
					scramble(list.AppendMutable().Message().Interface(), r)
					continue
				}
				list.Append(strange(f, r))
			}
		case f.Message() != nil:
			scramble(m.ProtoReflect().Mutable(f).Message().Interface(), r)
		default:
			m.ProtoReflect().Set(f, strange(f, r))
		}
	}
}

var strangeTexts = []string{"", "0", "1", "4294967296", "-1", "\x00\n", "\u202e", `C:\x`, string(make([]byte, 3000)), "日本"}

func strange(f protoreflect.FieldDescriptor, r *rand.Rand) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(strangeTexts[r.IntN(len(strangeTexts))])
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(r.IntN(2) == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(r.Int32() - 1<<30))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(r.Uint64()))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(r.Uint32())
	}
	panic("no value for " + string(f.FullName()))
}
