package apiserver

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"
)

func oneScalar(from, to protoreflect.FieldDescriptor, convert converter) step {
	return func(dst, src protoreflect.Message) error {
		v, err := convert(src.Get(from))
		if err != nil {
			return fmt.Errorf("%w (%s)", err, from.Name())
		}
		dst.Set(to, v)
		return nil
	}
}

// oneMessage keeps an absent message absent: a handler must be able to tell it from an empty one.
func oneMessage(from, to protoreflect.FieldDescriptor, inner plan) step {
	return func(dst, src protoreflect.Message) error {
		if !src.Has(from) {
			return nil
		}
		return inner.apply(dst.Mutable(to).Message(), src.Get(from).Message())
	}
}

func listOfScalars(from, to protoreflect.FieldDescriptor, convert converter) step {
	return func(dst, src protoreflect.Message) error {
		list := src.Get(from).List()
		if list.Len() == 0 {
			return nil
		}
		out := dst.Mutable(to).List()
		for i := range list.Len() {
			v, err := convert(list.Get(i))
			if err != nil {
				return fmt.Errorf("%w (%s, entry %d)", err, from.Name(), i)
			}
			out.Append(v)
		}
		return nil
	}
}

func listOfMessages(from, to protoreflect.FieldDescriptor, inner plan) step {
	return func(dst, src protoreflect.Message) error {
		list := src.Get(from).List()
		if list.Len() == 0 {
			return nil
		}
		out := dst.Mutable(to).List()
		for i := range list.Len() {
			if err := inner.apply(out.AppendMutable().Message(), list.Get(i).Message()); err != nil {
				return err
			}
		}
		return nil
	}
}

func mapOfScalars(from, to protoreflect.FieldDescriptor, key, value converter) step {
	return eachEntry(from, to, key, func(out protoreflect.Map, k protoreflect.MapKey, v protoreflect.Value) error {
		converted, err := value(v)
		if err != nil {
			return fmt.Errorf("%w (values of %s)", err, from.Name())
		}
		out.Set(k, converted)
		return nil
	})
}

func mapOfMessages(from, to protoreflect.FieldDescriptor, key converter, inner plan) step {
	return eachEntry(from, to, key, func(out protoreflect.Map, k protoreflect.MapKey, v protoreflect.Value) error {
		return inner.apply(out.Mutable(k).Message(), v.Message())
	})
}

// mapOfFields makes one entry of each field, also of those that are empty.
func mapOfFields(to protoreflect.FieldDescriptor, entries []entryRow, from []protoreflect.FieldDescriptor) step {
	return func(dst, src protoreflect.Message) error {
		out := dst.Mutable(to).Map()
		for i, e := range entries {
			out.Set(protoreflect.ValueOfString(e.key).MapKey(), src.Get(from[i]))
		}
		return nil
	}
}

// eachEntry converts the key of every entry. Two keys that become one ("1" and "01") are an error:
// one of the values would be lost, and which one would be chance.
func eachEntry(from, to protoreflect.FieldDescriptor, key converter,
	put func(out protoreflect.Map, k protoreflect.MapKey, v protoreflect.Value) error) step {
	return func(dst, src protoreflect.Message) error {
		entries := src.Get(from).Map()
		if entries.Len() == 0 {
			return nil
		}
		out := dst.Mutable(to).Map()
		var err error
		entries.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			var converted protoreflect.Value
			if converted, err = key(k.Value()); err != nil {
				err = fmt.Errorf("%w (keys of %s)", err, from.Name())
				return false
			}
			if out.Has(converted.MapKey()) {
				err = fmt.Errorf("two keys of %s mean %v", from.Name(), converted)
				return false
			}
			err = put(out, converted.MapKey(), v)
			return err == nil
		})
		return err
	}
}
