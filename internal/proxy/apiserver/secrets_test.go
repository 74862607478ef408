package apiserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/google/go-cmp/cmp"
	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	smbapi "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
)

// madeUp is the published request of smb with fields that a later version might add: it puts each kind of text where one can be.
func madeUp(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	field := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{
			Name: proto.String(name), JsonName: proto.String(name), Number: proto.Int32(number), Type: kind.Enum(),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
	}
	const (
		text, bytes, message = descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_BYTES, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
		number, nested       = descriptorpb.FieldDescriptorProto_TYPE_INT64, ".v9.NewSmbGlobalMappingRequest."
	)
	request := protodesc.ToDescriptorProto((&smbapi.NewSmbGlobalMappingRequest{}).ProtoReflect().Descriptor())
	list, table, inner := field("otps", 12, text), field("tokens", 14, message), field("inner", 15, message)
	list.Label, table.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum(), descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	table.TypeName, inner.TypeName = proto.String(nested+"TokensEntry"), proto.String(nested+"Inner")
	one := field("ticket", 13, text)
	one.OneofIndex = proto.Int32(0)
	request.Field = append(request.Field, field("otp", 10, text), field("key", 11, bytes), list, one, table, inner, field("pin", 16, number))
	request.OneofDecl = []*descriptorpb.OneofDescriptorProto{{Name: proto.String("proof")}}
	request.NestedType = []*descriptorpb.DescriptorProto{
		{Name: proto.String("TokensEntry"), Field: []*descriptorpb.FieldDescriptorProto{field("key", 1, text), field("value", 2, text)}, Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)}},
		{Name: proto.String("Inner"), Field: []*descriptorpb.FieldDescriptorProto{field("phrase", 1, text), field("username", 2, text)}},
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("v9.proto"), Package: proto.String("v9"), Syntax: proto.String("proto3"), MessageType: []*descriptorpb.DescriptorProto{request},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().Get(0)
}

func TestANewFieldIsNamedByTheCheckOfClassesAndByLoad(t *testing.T) {
	made := madeUp(t)
	_, missing := unread(readClasses(t), "smb", made)
	l := &loader{tables: published()}
	l.classified("smb", made, 0)
	faults := errors.Join(l.faults...).Error()
	for _, name := range []string{"otp", "key", "otps", "ticket", "tokens", "inner", "pin"} {
		full := "v9.NewSmbGlobalMappingRequest." + name
		if name == "inner" {
			full = "v9.NewSmbGlobalMappingRequest.Inner.phrase"
		}
		if !slices.ContainsFunc(missing, func(line string) bool {
			return strings.HasPrefix(line, "smb "+full+" (") && strings.HasSuffix(line, ": unclassified")
		}) {
			t.Errorf("the check does not name %s: %q", full, missing)
		}
		if !strings.Contains(faults, "no table says whether "+full+" may be recorded") {
			t.Errorf("Load does not name %s", full)
		}
	}
	// A name that is classified, in a message that nobody has read: Load takes it for what it says, the check does not.
	if !slices.Contains(missing, "smb v9.NewSmbGlobalMappingRequest.Inner.username (string): public") {
		t.Errorf("the check lets a known name pass in a new place: %q", missing)
	}
}

// sortedSecrets gives Secrets the order that it has not: protobuf messages and maps are read in a random one.
func sortedSecrets(call *Call) []string {
	return slices.Sorted(slices.Values(Secrets(call)))
}

func TestWhatNobodyHasClassifiedIsWithheldAndCountsAsSecret(t *testing.T) {
	made := madeUp(t)
	m := dynamicpb.NewMessage(made)
	set := func(name string, v any) {
		m.Set(made.Fields().ByName(protoreflect.Name(name)), protoreflect.ValueOf(v))
	}
	set("password", "canary-password")
	set("username", "somebody")
	set("otp", "canary-otp")
	set("key", []byte("canary-key"))
	set("ticket", "canary-ticket")
	otps := m.Mutable(made.Fields().ByName("otps")).List()
	otps.Append(protoreflect.ValueOf("canary-otps"))
	otps.Append(protoreflect.ValueOf("")) // which every text has
	m.Mutable(made.Fields().ByName("tokens")).Map().Set(protoreflect.ValueOf("canary-of-a-key").MapKey(), protoreflect.ValueOf("canary-of-a-value"))
	inner := made.Fields().ByName("inner")
	m.Mutable(inner).Message().Set(inner.Message().Fields().ByName("phrase"), protoreflect.ValueOf("canary-within"))
	call := &Call{Operation: &Operation{Group: "smb"}, Request: m}

	params, redacted := Params(call)
	if strings.Contains(string(params), "canary") || !strings.Contains(string(params), "somebody") || !validJSON(params) {
		t.Errorf("params = %s", params)
	}
	if diff := cmp.Diff([]string{"password", "otp", "key", "otps", "ticket", "tokens", "inner.phrase"}, redacted); diff != "" {
		t.Errorf("redacted (-want +got):\n%s", diff)
	}
	want := []string{"canary-key", "canary-of-a-key", "canary-of-a-value", "canary-otp", "canary-otps", "canary-password", "canary-ticket", "canary-within"}
	if diff := cmp.Diff(want, sortedSecrets(call)); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}

// selfNested is a message that contains itself.
func selfNested(t *testing.T, depth int) proto.Message {
	t.Helper()
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("deep.proto"), Package: proto.String("v9"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Deep"), Field: []*descriptorpb.FieldDescriptorProto{
			{Name: proto.String("path"), Number: proto.Int32(1), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()},
			{Name: proto.String("deeper"), Number: proto.Int32(2), Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), TypeName: proto.String(".v9.Deep"), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()},
			{Name: proto.String("pin"), Number: proto.Int32(3), Type: descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()},
		}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := file.Messages().Get(0)
	m := dynamicpb.NewMessage(d)
	at := protoreflect.Message(m)
	for i := range depth {
		at.Set(d.Fields().ByName("path"), protoreflect.ValueOf(fmt.Sprintf("level-%d", i)))
		at = at.Mutable(d.Fields().ByName("deeper")).Message()
	}
	at.Set(d.Fields().ByName("pin"), protoreflect.ValueOf(int64(4711)))
	return m
}

func TestWhatIsNestedTooDeepIsWithheldAndCountsAsSecret(t *testing.T) {
	call := &Call{Operation: &Operation{Group: "filesystem"}, Request: selfNested(t, 8)}
	params, redacted := Params(call)
	if strings.Contains(string(params), "level-5") || !strings.Contains(string(params), "level-4") || len(redacted) != 3 {
		t.Errorf("params = %s, redacted %q", params, redacted)
	}
	if diff := cmp.Diff([]string{"4711", "level-5", "level-6", "level-7"}, sortedSecrets(call)); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}

func TestFieldsThatNoDescriptorKnowsAreInNoRecord(t *testing.T) {
	_, m := find(t, "filesystem", "v1", "Mkdir")
	request := m.NewRequest()
	wire := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), `C:\a`)
	wire = protowire.AppendString(protowire.AppendTag(wire, 99, protowire.BytesType), "canary-unknown")
	if err := proto.Unmarshal(wire, request); err != nil {
		t.Fatal(err)
	}
	if len(request.ProtoReflect().GetUnknown()) == 0 {
		t.Fatal("the unknown field was lost before the test")
	}
	call, err := m.Call(request)
	if err != nil {
		t.Fatal(err)
	}
	params, _ := Params(call)
	if string(params) != `{"path":"C:\\a"}` || len(call.Request.ProtoReflect().GetUnknown()) != 0 {
		t.Errorf("params = %s, unknown %q", params, call.Request.ProtoReflect().GetUnknown())
	}
	// Not even of a message that is looked at as it came.
	params, _ = Params(&Call{Operation: call.Operation, Request: request})
	if strings.Contains(string(params), "canary") {
		t.Errorf("params = %s", params)
	}
}

func TestTheSecretsOfThePublishedRequestsAreTheseThree(t *testing.T) {
	found := map[string][]string{}
	for _, a := range loadAll(t) {
		for _, m := range a.Methods() {
			request := m.NewRequest()
			fields := request.ProtoReflect().Descriptor().Fields()
			for i := range fields.Len() {
				if f := fields.Get(i); f.Kind() == protoreflect.StringKind && !f.IsList() && f.Name() != "disk_id" && f.Name() != "diskID" {
					request.ProtoReflect().Set(f, protoreflect.ValueOf("of "+string(f.Name())))
				} else if f.Kind() == protoreflect.StringKind && !f.IsList() {
					request.ProtoReflect().Set(f, protoreflect.ValueOf("1"))
				}
			}
			call, err := m.Call(request)
			if err != nil {
				t.Fatal(err)
			}
			secrets := sortedSecrets(call)
			if call.Operation.IsOpen != (len(secrets) == 0) {
				t.Errorf("%s: open %v, secrets %q", m.FullMethod, call.Operation.IsOpen, secrets)
			}
			for _, s := range slices.Compact(secrets) { // in the words of the hub and as it was served
				key := a.GroupVersion().Group + " " + m.Operation.Name + " " + s
				found[key] = append(found[key], a.GroupVersion().Version)
			}
		}
	}
	want := map[string][]string{
		"smb NewSmbGlobalMapping of password":           {"v1alpha1", "v1beta1", "v1beta2", "v1"},
		"iscsi ConnectTarget of chap_secret":            {"v1alpha1", "v1alpha2"},
		"iscsi SetMutualChapSecret of MutualChapSecret": {"v1alpha2"},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSecretsOfACallWithoutAnyCostNothing(t *testing.T) {
	_, m := find(t, "filesystem", "v1", "Rmdir")
	call, err := m.Call(m.NewRequest())
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { Secrets(call) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if Secrets(&Call{Operation: &Operation{Group: "smb"}}) != nil {
		t.Error("a call that is passed on unread has secrets")
	}
	// A call that did not come from Load is looked at.
	if got := Secrets(callOf("nfs", &fsapi.MkdirRequest{Path: "x"})); len(got) != 1 {
		t.Errorf("secrets of an unknown group: %q", got)
	}
}
