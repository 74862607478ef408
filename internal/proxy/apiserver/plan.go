package apiserver

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// plan copies the fields of one message to another of a different type.
//
// Fields that the descriptors do not know are not copied. They cannot act on the host, for only the hub
// message is carried out, and rules and records see that same message.
type plan []step

// step fills one field. It runs on zero values too: an empty disk_id is an error and not disk 0.
type step func(to, from protoreflect.Message) error

func (p plan) apply(to, from protoreflect.Message) error {
	for _, s := range p {
		if err := s(to, from); err != nil {
			return err
		}
	}
	return nil
}

// maxDepth bounds messages within messages; a message that contains itself would never end.
const maxDepth = 4

// compiler makes the plans of one method.
type compiler struct {
	rows          *rowBook
	group, method string
	part          part
	faults        *[]error
}

func (c compiler) fault(format string, args ...any) {
	*c.faults = append(*c.faults, fmt.Errorf("%s %s %s: %w", c.group, c.method, c.part, fmt.Errorf(format, args...)))
}

// message compiles the plan between a served message and the hub's. Every field of both must be paired,
// or a row must say why it is not.
func (c compiler) message(served, hub protoreflect.MessageDescriptor, prefix string, depth int) plan {
	if depth > maxDepth {
		c.fault("%s is nested deeper than %d", prefix, maxDepth)
		return nil
	}
	var p plan
	paired := map[protoreflect.Name]bool{}
	for i := range served.Fields().Len() {
		s := served.Fields().Get(i)
		name := prefix + string(s.Name())
		row, ok := c.rows.field(c.group, c.method, c.part, name, "")
		if ok && row.entries != nil {
			if st := c.entries(s, hub, row, prefix, paired); st != nil {
				p = append(p, st)
			}
			continue
		}
		if ok && row.hub == "" {
			if row.why == "" {
				c.fault("field %s is left out without a reason", name)
			}
			continue
		}
		hubName := s.Name()
		if ok {
			hubName = protoreflect.Name(strings.TrimPrefix(row.hub, prefix)) // rows may give the hub's name in full or short
		}
		h := hub.Fields().ByName(hubName)
		switch {
		case h == nil:
			c.fault("field %s has no counterpart in %s", name, hub.FullName())
			continue
		case paired[hubName]:
			c.fault("field %s would overwrite %s, which another field fills", name, hubName)
			continue
		}
		paired[hubName] = true
		if st := c.field(s, h, row.as, name, depth); st != nil {
			p = append(p, st)
		}
	}
	c.unpaired(hub, paired, prefix)
	return p
}

// entries compiles the step that makes a map of some fields of the hub.
func (c compiler) entries(served protoreflect.FieldDescriptor, hub protoreflect.MessageDescriptor, row fieldRow, prefix string, paired map[protoreflect.Name]bool) step {
	if c.part != inResponse || !served.IsMap() || served.MapKey().Kind() != protoreflect.StringKind || served.MapValue().Kind() != protoreflect.StringKind {
		c.fault("field %s is not a map of texts in a response, and only that is made of entries", prefix+string(served.Name()))
		return nil
	}
	var from []protoreflect.FieldDescriptor
	for _, e := range row.entries {
		h := hub.Fields().ByName(protoreflect.Name(e.hub))
		switch {
		case h == nil || h.Kind() != protoreflect.StringKind || h.IsList():
			c.fault("entry %s of %s: %s has no text %s", e.key, prefix+string(served.Name()), hub.FullName(), e.hub)
			return nil
		case paired[h.Name()]:
			c.fault("entry %s of %s: %s is in another field already", e.key, prefix+string(served.Name()), e.hub)
			return nil
		}
		paired[h.Name()] = true
		from = append(from, h)
	}
	return mapOfFields(served, row.entries, from)
}

func (c compiler) unpaired(hub protoreflect.MessageDescriptor, paired map[protoreflect.Name]bool, prefix string) {
	for i := range hub.Fields().Len() {
		h := hub.Fields().Get(i).Name()
		if paired[h] {
			continue
		}
		if row, ok := c.rows.field(c.group, c.method, c.part, "", prefix+string(h)); !ok || row.why == "" {
			c.fault("field %s of the hub has no counterpart, and no row says why", prefix+string(h))
		}
	}
}

// field compiles the step for one pair of fields.
func (c compiler) field(served, hub protoreflect.FieldDescriptor, as conversion, name string, depth int) step {
	from, to := served, hub
	if c.part == inResponse {
		from, to = hub, served
	}
	if err := sameShape(from, to); err != nil {
		c.fault("field %s: %w", name, err)
		return nil
	}
	switch {
	case from.IsMap():
		key, err := scalar(from.MapKey(), to.MapKey(), as)
		if err != nil {
			c.fault("keys of %s: %w", name, err)
			return nil
		}
		if from.MapValue().Message() != nil {
			return mapOfMessages(from, to, key, c.message(served.MapValue().Message(), hub.MapValue().Message(), name+".", depth+1))
		}
		value, err := scalar(from.MapValue(), to.MapValue(), asIs)
		if err != nil {
			c.fault("values of %s: %w", name, err)
			return nil
		}
		return mapOfScalars(from, to, key, value)
	case from.Message() != nil:
		inner := c.message(served.Message(), hub.Message(), name+".", depth+1)
		if from.IsList() {
			return listOfMessages(from, to, inner)
		}
		return oneMessage(from, to, inner)
	default:
		convert, err := scalar(from, to, as)
		if err != nil {
			c.fault("field %s: %w", name, err)
			return nil
		}
		if from.IsList() {
			return listOfScalars(from, to, convert)
		}
		return oneScalar(from, to, convert)
	}
}

// sameShape refuses pairs of which one is repeated, a map, or a message, and the other is not, and features that no
// published message uses, which were never checked: oneofs, optional scalars, groups.
func sameShape(from, to protoreflect.FieldDescriptor) error {
	switch {
	case from.IsMap() != to.IsMap(), from.IsList() != to.IsList(), (from.Message() == nil) != (to.Message() == nil):
		return fmt.Errorf("%s and %s differ in shape", shape(from), shape(to))
	case from.Kind() == protoreflect.GroupKind || to.Kind() == protoreflect.GroupKind,
		from.ContainingOneof() != nil || to.ContainingOneof() != nil,
		from.Message() == nil && !from.IsList() && (from.HasPresence() || to.HasPresence()):
		return fmt.Errorf("%s and %s: only plain proto3 fields are converted", shape(from), shape(to))
	case from.IsMap() && (from.MapValue().Message() == nil) != (to.MapValue().Message() == nil):
		return fmt.Errorf("the values of %s and %s differ in shape", from.FullName(), to.FullName())
	}
	return nil
}

func shape(f protoreflect.FieldDescriptor) string {
	return fmt.Sprintf("%s (%s %s)", f.FullName(), f.Cardinality(), f.Kind())
}
