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
	case f.IsList():
		list := m.ProtoReflect().Mutable(f).List()
		for i := range 3 {
			list.Append(distinct(f, 10*n+i))
		}
	default:
		m.ProtoReflect().Set(f, distinct(f, n))
	}
}

// distinct returns a value for a field; texts are such that they are numbers where a number is read from them.
func distinct(f protoreflect.FieldDescriptor, n int) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		if f.Name() == "disk_id" {
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
	texts := []string{"", "0", "1", "4294967296", "-1", "\x00\n", "\u202e", `C:\x`, string(make([]byte, 3000)), "日本"}
	for i := range fields.Len() {
		f := fields.Get(i)
		var v protoreflect.Value
		switch f.Kind() {
		case protoreflect.StringKind:
			v = protoreflect.ValueOfString(texts[r.IntN(len(texts))])
		case protoreflect.BoolKind:
			v = protoreflect.ValueOfBool(r.IntN(2) == 0)
		case protoreflect.EnumKind:
			v = protoreflect.ValueOfEnum(protoreflect.EnumNumber(r.Int32() - 1<<30))
		case protoreflect.Int64Kind:
			v = protoreflect.ValueOfInt64(int64(r.Uint64()))
		case protoreflect.Uint32Kind:
			v = protoreflect.ValueOfUint32(r.Uint32())
		default:
			panic("no value for " + string(f.FullName()))
		}
		switch {
		case r.IntN(4) == 0:
		case f.IsList():
			list := m.ProtoReflect().Mutable(f).List()
			for range r.IntN(100) {
				list.Append(v)
			}
		default:
			m.ProtoReflect().Set(f, v)
		}
	}
}
