package proxy

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// fewestMethods is how many methods CSI Proxy has published in all versions of all groups. A list that is shorter proves nothing.
const fewestMethods = 139

// everyAPI is what the proxy can serve.
func everyAPI(t testing.TB) []*apiserver.API {
	t.Helper()
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		t.Fatal(err)
	}
	return apis
}

func TestTheMethodsThatAreServedAreThoseThatWerePublished(t *testing.T) {
	served := map[string]bool{}
	for _, api := range everyAPI(t) {
		for _, m := range api.Methods() {
			served[m.FullMethod] = true
		}
	}
	published := 0
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if !strings.HasSuffix(file.Path(), "/api.proto") { // as CSI Proxy calls each of its files
			return true
		}
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				published++
				if name := fmt.Sprintf("/%s/%s", service.FullName(), service.Methods().Get(j).Name()); !served[name] {
					t.Errorf("%s of %s is not served", name, file.Path())
				}
			}
		}
		return true
	})
	if published < fewestMethods || published != len(served) {
		t.Errorf("%d methods are published, %d served, and there were %d", published, len(served), fewestMethods)
	}
}

// filled is m with something in each of its fields. Texts can be read as numbers.
func filled(m proto.Message) proto.Message {
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		switch f := fields.Get(i); {
		case f.IsMap():
		case f.IsList() && f.Message() != nil:
			filled(m.ProtoReflect().Mutable(f).List().AppendMutable().Message().Interface())
		case f.IsList():
			m.ProtoReflect().Mutable(f).List().Append(something(f))
		case f.Message() != nil:
			filled(m.ProtoReflect().Mutable(f).Message().Interface())
		default:
			m.ProtoReflect().Set(f, something(f))
		}
	}
	return m
}

func something(f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("1")
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(f.Enum().Values().Get(f.Enum().Values().Len() - 1).Number())
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(1)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(1)
	}
	panic("nothing for " + string(f.FullName()))
}

// responseTo is a response to a call in the words of the hub.
func responseTo(call *apiserver.Call) (proto.Message, error) {
	asked := call.Request.ProtoReflect().Descriptor()
	services := asked.ParentFile().Services()
	for i := range services.Len() {
		for j := range services.Get(i).Methods().Len() {
			if m := services.Get(i).Methods().Get(j); m.Input() == asked {
				kind, err := protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName())
				if err != nil {
					return nil, err
				}
				return filled(kind.New().Interface()), nil
			}
		}
	}
	return nil, fmt.Errorf("no method takes %s", asked.FullName())
}
