package apiserver

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// conversion is a change of kind that a row allows.
type conversion string

const (
	asIs      conversion = ""
	asDecimal conversion = "decimal" // text to and from a 32-bit number
	asWider   conversion = "wider"   // uint32 to int64
)

type converter func(protoreflect.Value) (protoreflect.Value, error)

// scalar returns the converter between two fields that are neither messages nor maps.
func scalar(from, to protoreflect.FieldDescriptor, as conversion) (converter, error) {
	switch {
	case from.Kind() == protoreflect.EnumKind && to.Kind() == protoreflect.EnumKind:
		if err := sameEnum(from.Enum(), to.Enum()); err != nil {
			return nil, err
		}
		return unchanged, nil
	case from.Kind() == to.Kind() && from.Kind() == protoreflect.BytesKind:
		return cloned, nil
	case from.Kind() == to.Kind():
		return unchanged, nil
	case as == asDecimal && from.Kind() == protoreflect.StringKind && to.Kind() == protoreflect.Uint32Kind:
		return parseDecimal, nil
	case as == asDecimal && from.Kind() == protoreflect.Uint32Kind && to.Kind() == protoreflect.StringKind:
		return formatDecimal, nil
	case as == asWider && from.Kind() == protoreflect.Uint32Kind && to.Kind() == protoreflect.Int64Kind:
		return widen, nil
	}
	return nil, fmt.Errorf("%s cannot become %s (conversion %q)", shape(from), shape(to), as)
}

func unchanged(v protoreflect.Value) (protoreflect.Value, error) { return v, nil }

func cloned(v protoreflect.Value) (protoreflect.Value, error) {
	return protoreflect.ValueOfBytes(slices.Clone(v.Bytes())), nil
}

// parseDecimal refuses what does not fit 32 bits. Cut off instead, "4294967297" would name disk 1.
func parseDecimal(v protoreflect.Value) (protoreflect.Value, error) {
	n, err := strconv.ParseUint(v.String(), 10, 32)
	if err != nil {
		if number, ok := errors.AsType[*strconv.NumError](err); ok {
			number.Num = clip(number.Num, 64) // the text is the caller's; it may have megabytes
		}
		return protoreflect.Value{}, fmt.Errorf("Failed to parse diskId: err=%w", err) //nolint:revive,staticcheck // clients know this text
	}
	return protoreflect.ValueOfUint32(uint32(n)), nil
}

func formatDecimal(v protoreflect.Value) (protoreflect.Value, error) {
	return protoreflect.ValueOfString(strconv.FormatUint(v.Uint(), 10)), nil
}

func widen(v protoreflect.Value) (protoreflect.Value, error) {
	return protoreflect.ValueOfInt64(int64(v.Uint())), nil //nolint:gosec // the field has 32 bits
}

// sameEnum compares names and numbers: a number that means something else in the other version would be a different request.
func sameEnum(a, b protoreflect.EnumDescriptor) error {
	if a.Values().Len() != b.Values().Len() {
		return fmt.Errorf("enum %s has %d values and %s has %d", a.FullName(), a.Values().Len(), b.FullName(), b.Values().Len())
	}
	for i := range a.Values().Len() {
		v := a.Values().Get(i)
		if w := b.Values().ByName(v.Name()); w == nil || w.Number() != v.Number() {
			return fmt.Errorf("value %s = %d of enum %s is not in %s", v.Name(), v.Number(), a.FullName(), b.FullName())
		}
	}
	return nil
}
