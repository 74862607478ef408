package forward

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// known returns a copy of m without the fields that this program has no names for: no check has seen them, and a newer server
// could act on them.
func known(m proto.Message) proto.Message {
	copied := proto.Clone(m)
	strip(copied.ProtoReflect())
	return copied
}

func strip(m protoreflect.Message) {
	m.SetUnknown(nil)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			if f.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, inner protoreflect.Value) bool {
					strip(inner.Message())
					return true
				})
			}
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				strip(v.List().Get(i).Message())
			}
		default:
			strip(v.Message())
		}
		return true
	})
}
