package apiserver

import "google.golang.org/protobuf/reflect/protoreflect"

// Secrets returns the values of a call that a record withholds, as texts: those that are set, in no particular order and possibly
// more than once. None is empty. A call that can have no secrets costs nothing.
func Secrets(call *Call) []string {
	if call.Operation.IsOpen || call.Request == nil { // the second is passed on unread
		return nil
	}
	c := collector{group: call.Operation.Group}
	c.message(call.Request.ProtoReflect(), false, 0)
	if call.Served != nil { // it is what an older server behind this one is sent
		c.message(call.Served.ProtoReflect(), false, 0)
	}
	return c.texts
}

// collector gathers the values of fields that are withheld, and of all that is below them.
type collector struct {
	group string
	texts []string
}

func (c *collector) message(m protoreflect.Message, isSecret bool, depth int) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		isSecret := isSecret || isWithheld(c.group, f, depth)
		switch {
		case f.IsMap():
			v.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				c.value(f.MapKey(), key.Value(), isSecret, depth)
				c.value(f.MapValue(), value, isSecret, depth)
				return true
			})
		case f.IsList():
			for i := range v.List().Len() {
				c.value(f, v.List().Get(i), isSecret, depth)
			}
		default:
			c.value(f, v, isSecret, depth)
		}
		return true
	})
}

func (c *collector) value(f protoreflect.FieldDescriptor, v protoreflect.Value, isSecret bool, depth int) {
	switch {
	case f.Message() != nil:
		c.message(v.Message(), isSecret, depth+1)
	case isSecret && f.Kind() == protoreflect.BytesKind:
		c.add(string(v.Bytes()))
	case isSecret:
		c.add(v.String())
	}
}

func (c *collector) add(text string) {
	if text != "" {
		c.texts = append(c.texts, text)
	}
}

// hasSecrets says whether a message of a type can have any.
func hasSecrets(group string, m protoreflect.MessageDescriptor, depth int) bool {
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		inner := f.Message()
		if f.IsMap() {
			inner = f.MapValue().Message()
		}
		if isWithheld(group, f, depth) || inner != nil && hasSecrets(group, inner, depth+1) {
			return true
		}
	}
	return false
}
