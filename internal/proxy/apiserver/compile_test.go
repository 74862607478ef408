package apiserver

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// declare makes two messages, Served and Hub, from descriptors in text form.
func declare(t *testing.T, rest string) (served, hub protoreflect.MessageDescriptor) {
	t.Helper()
	file := &descriptorpb.FileDescriptorProto{}
	if err := prototext.Unmarshal([]byte(`name: "x.proto" package: "x" syntax: "proto3" `+rest), file); err != nil {
		t.Fatal(err)
	}
	d, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d.Messages().ByName("Served"), d.Messages().ByName("Hub")
}

func compile(served, hub protoreflect.MessageDescriptor, in part, rows ...fieldRow) (plan, error) {
	var faults []error
	c := compiler{rows: newRowBook(tables{fields: rows}), group: "g", method: "M", part: in, faults: &faults}
	p := c.message(served, hub, "", 0)
	return p, errors.Join(faults...)
}

const (
	twoEnums = `enum_type { name: "A" value { name: "ZERO" number: 0 } value { name: "ONE" number: 1 } } `
	inBoth   = `message_type { name: "Served" field { name: "f" number: 1 label: LABEL_OPTIONAL type: %S } } message_type { name: "Hub" field { name: "f" number: 1 label: LABEL_OPTIONAL type: %H } } `
)

func pair(served, hub string) string {
	return strings.NewReplacer("%S", served, "%H", hub).Replace(inBoth)
}

func TestCompileRefusesPairsThatDiffer(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"enums with other numbers", `message_type { name: "A" enum_type { name: "E" value { name: "ZERO" number: 0 } value { name: "ONE" number: 1 } } }
			message_type { name: "B" enum_type { name: "E" value { name: "ZERO" number: 0 } value { name: "ONE" number: 2 } } } ` +
			pair(`TYPE_ENUM type_name: ".x.A.E"`, `TYPE_ENUM type_name: ".x.B.E"`), "value ONE = 1 of enum x.A.E is not in x.B.E"},
		{"enums with other names", twoEnums + `enum_type { name: "B" value { name: "B_ZERO" number: 0 } value { name: "B_ONE" number: 1 } }` +
			pair(`TYPE_ENUM type_name: ".x.A"`, `TYPE_ENUM type_name: ".x.B"`), "value ZERO = 0 of enum x.A is not in x.B"},
		{"enums of which one has more", twoEnums + `enum_type { name: "B" value { name: "B_ZERO" number: 0 } }` +
			pair(`TYPE_ENUM type_name: ".x.A"`, `TYPE_ENUM type_name: ".x.B"`), "enum x.A has 2 values and x.B has 1"},
		{"an enum and a number", twoEnums + pair(`TYPE_ENUM type_name: ".x.A"`, `TYPE_INT32`), "cannot become"},
		{"a signed and an unsigned number", pair("TYPE_INT32", "TYPE_UINT32"), "cannot become"},
		{"a wide and a narrow number", pair("TYPE_UINT64", "TYPE_UINT32"), "cannot become"},
		{"a text and bytes", pair("TYPE_STRING", "TYPE_BYTES"), "cannot become"},
		{"a text and a message", `message_type { name: "T" } ` + pair("TYPE_STRING", `TYPE_MESSAGE type_name: ".x.T"`), "differ in shape"},
		{"one and many", `message_type { name: "Served" field { name: "f" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING } }
			message_type { name: "Hub" field { name: "f" number: 1 label: LABEL_REPEATED type: TYPE_STRING } }`, "differ in shape"},
		{"a choice of fields", `message_type { name: "Served" field { name: "f" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING oneof_index: 0 } oneof_decl { name: "o" } }
			message_type { name: "Hub" field { name: "f" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING } }`, "only plain proto3 fields"},
		{"a field that may be absent", `message_type { name: "Served" field { name: "f" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING } }
			message_type { name: "Hub" field { name: "f" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING oneof_index: 0 proto3_optional: true } oneof_decl { name: "_f" } }`, "only plain proto3 fields"},
		{"a message in itself", `message_type { name: "Served" field { name: "f" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".x.Served" } }
			message_type { name: "Hub" field { name: "f" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".x.Hub" } }`, "nested deeper"},
		{"messages whose own fields differ", `message_type { name: "S" field { name: "a" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING } } message_type { name: "H" field { name: "b" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING } } ` +
			pair(`TYPE_MESSAGE type_name: ".x.S"`, `TYPE_MESSAGE type_name: ".x.H"`), "field f.a has no counterpart in x.H"},
	}
	for _, tt := range tests {
		for _, in := range []part{inRequest, inResponse} {
			t.Run(tt.name+" in a "+string(in), func(t *testing.T) {
				served, hub := declare(t, tt.file)
				_, err := compile(served, hub, in)
				if err == nil {
					t.Fatal("it compiles")
				}
				if in == inRequest && !strings.Contains(err.Error(), tt.want) { // in responses the two change places in the text
					t.Errorf("error = %v, want %q", err, tt.want)
				}
			})
		}
	}
}

// nested has a message that may be absent, lists of messages and of texts that become numbers, and bytes.
const nested = `
message_type { name: "SP" field { name: "address" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING } field { name: "port" number: 2 label: LABEL_OPTIONAL type: TYPE_UINT32 } }
message_type { name: "HP" field { name: "port" number: 1 label: LABEL_OPTIONAL type: TYPE_UINT32 } field { name: "host" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING } }
message_type { name: "Served" field { name: "portal" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".x.SP" } field { name: "portals" number: 2 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".x.SP" } field { name: "ids" number: 3 label: LABEL_REPEATED type: TYPE_STRING } field { name: "raw" number: 4 label: LABEL_OPTIONAL type: TYPE_BYTES } }
message_type { name: "Hub" field { name: "portals" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".x.HP" } field { name: "portal" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".x.HP" } field { name: "ids" number: 3 label: LABEL_REPEATED type: TYPE_UINT32 } field { name: "raw" number: 4 label: LABEL_OPTIONAL type: TYPE_BYTES } }
`

func TestMessagesInMessagesAreConverted(t *testing.T) {
	servedType, hubType := declare(t, nested)
	p, err := compile(servedType, hubType, inRequest,
		fieldRow{group: "g", method: "M", part: inRequest, served: "portal.address", hub: "portal.host"},
		fieldRow{group: "g", method: "M", part: inRequest, served: "portals.address", hub: "host"},
		fieldRow{group: "g", method: "M", part: inRequest, served: "ids", hub: "ids", as: asDecimal})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, served, hub string }{
		{"absent stays absent", ``, ``},
		{"empty stays empty", `portal {}`, `portal {}`},
		{"everything", `portal { address: "a" port: 1 } portals { address: "b" } portals { port: 2 } ids: "7" ids: "8" raw: "r"`,
			`portal { host: "a" port: 1 } portals { host: "b" } portals { port: 2 } ids: 7 ids: 8 raw: "r"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			from, to, want := dynamicpb.NewMessage(servedType), dynamicpb.NewMessage(hubType), dynamicpb.NewMessage(hubType)
			if err := errors.Join(prototext.Unmarshal([]byte(tt.served), from), prototext.Unmarshal([]byte(tt.hub), want)); err != nil {
				t.Fatal(err)
			}
			if err := p.apply(to, from); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(to, want) {
				t.Errorf("hub = %v, want %v", to, want)
			}
		})
	}
	from, to := dynamicpb.NewMessage(servedType), dynamicpb.NewMessage(hubType)
	if err := prototext.Unmarshal([]byte(`ids: "7" ids: "x"`), from); err != nil {
		t.Fatal(err)
	}
	if err := p.apply(to, from); err == nil || !strings.Contains(err.Error(), "(ids, entry 1)") {
		t.Errorf("error = %v", err)
	}
}
