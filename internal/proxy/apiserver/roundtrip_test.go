package apiserver

import (
	"context"
	"testing"

	diskapi "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	diskv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta1"
	diskv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta2"
	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	smbapi "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	smbv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1alpha1"
	volapi "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	volv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta1"
	"google.golang.org/protobuf/protoadapt"

	fsv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
)

// renamed are the methods whose fields cannot be paired by name, with what they must become, written out.
// The served requests and hub responses are as fill makes them.
var renamed = map[string]struct{ request, response proto.Message }{
	"PathExists":   {&fsapi.PathExistsRequest{Path: "path 1"}, protoadapt.MessageV2Of(&fsv1alpha1.PathExistsResponse{Exists: true})},
	"Mkdir":        {&fsapi.MkdirRequest{Path: "path 1"}, protoadapt.MessageV2Of(&fsv1alpha1.MkdirResponse{})},
	"Rmdir":        {&fsapi.RmdirRequest{Path: "path 1", Force: true}, protoadapt.MessageV2Of(&fsv1alpha1.RmdirResponse{})},
	"LinkPath":     {&fsapi.CreateSymlinkRequest{SourcePath: "source_path 1", TargetPath: "target_path 2"}, protoadapt.MessageV2Of(&fsv1alpha1.LinkPathResponse{})},
	"IsMountPoint": {&fsapi.IsSymlinkRequest{Path: "path 1"}, protoadapt.MessageV2Of(&fsv1alpha1.IsMountPointResponse{IsMountPoint: true})},
	"ListVolumesOnDisk": {&volapi.ListVolumesOnDiskRequest{DiskNumber: 101},
		protoadapt.MessageV2Of(&volv1beta1.ListVolumesOnDiskResponse{VolumeIds: []string{"volume_ids 10", "volume_ids 11", "volume_ids 12"}})},
	"MountVolume":         {&volapi.MountVolumeRequest{VolumeId: "volume_id 1", TargetPath: "path 2"}, protoadapt.MessageV2Of(&volv1beta1.MountVolumeResponse{})},
	"DismountVolume":      {&volapi.UnmountVolumeRequest{VolumeId: "volume_id 1", TargetPath: "path 2"}, protoadapt.MessageV2Of(&volv1beta1.DismountVolumeResponse{})},
	"ResizeVolume":        {&volapi.ResizeVolumeRequest{VolumeId: "volume_id 1", SizeBytes: 1<<40 + 2}, protoadapt.MessageV2Of(&volv1beta1.ResizeVolumeResponse{})},
	"VolumeStats":         {&volapi.GetVolumeStatsRequest{VolumeId: "volume_id 1"}, protoadapt.MessageV2Of(&volv1beta1.VolumeStatsResponse{VolumeSize: 1<<40 + 1, VolumeUsedSize: 1<<40 + 2})},
	"GetVolumeDiskNumber": {&volapi.GetDiskNumberFromVolumeIDRequest{VolumeId: "volume_id 1"}, protoadapt.MessageV2Of(&volv1beta1.VolumeDiskNumberResponse{DiskNumber: 1<<31 + 1})},
	"PartitionDisk":       {&diskapi.PartitionDiskRequest{DiskNumber: 101}, protoadapt.MessageV2Of(&diskv1beta1.PartitionDiskResponse{})},
	"DiskStats":           {&diskapi.GetDiskStatsRequest{DiskNumber: 101}, protoadapt.MessageV2Of(&diskv1beta1.DiskStatsResponse{DiskSize: 1<<40 + 1})},
	"SetAttachState":      {&diskapi.SetDiskStateRequest{DiskNumber: 101, IsOnline: true}, protoadapt.MessageV2Of(&diskv1beta2.SetAttachStateResponse{})},
	"GetAttachState":      {&diskapi.GetDiskStateRequest{DiskNumber: 101}, protoadapt.MessageV2Of(&diskv1beta2.GetAttachStateResponse{IsOnline: true})},
	"ListDiskIDs": {&diskapi.ListDiskIDsRequest{}, protoadapt.MessageV2Of(&diskv1beta1.ListDiskIDsResponse{DiskIDs: map[string]*diskv1beta1.DiskIDs{
		"110": {Identifiers: map[string]string{"page83": "page83 1", "serialNumber": "serial_number 2"}},
		"111": {Identifiers: map[string]string{"page83": "page83 1", "serialNumber": "serial_number 2"}},
		"112": {Identifiers: map[string]string{"page83": "page83 1", "serialNumber": "serial_number 2"}}}})},
	"NewSmbGlobalMapping": {&smbapi.NewSmbGlobalMappingRequest{RemotePath: "remote_path 1", LocalPath: "local_path 2", Username: "username 3", Password: "password 4"},
		protoadapt.MessageV2Of(&smbv1alpha1.NewSmbGlobalMappingResponse{})},
	"RemoveSmbGlobalMapping": {&smbapi.RemoveSmbGlobalMappingRequest{RemotePath: "remote_path 1"}, protoadapt.MessageV2Of(&smbv1alpha1.RemoveSmbGlobalMappingResponse{})},
	"GetVolumeIDFromMount":   {&volapi.GetVolumeIDFromTargetPathRequest{TargetPath: "mount 1"}, protoadapt.MessageV2Of(&volv1beta1.VolumeIDFromMountResponse{VolumeId: "volume_id 1"})},
}

// named returns the values of a message by field name, and those of maps by key.
func named(m proto.Message) map[string]any {
	values := map[string]any{}
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			entries := map[string]any{}
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				entries[k.String()] = plainValue(v)
				return true
			})
			values[string(f.Name())] = entries
		case f.IsList():
			var list []any
			for i := range v.List().Len() {
				list = append(list, plainValue(v.List().Get(i)))
			}
			values[string(f.Name())] = list
		default:
			values[string(f.Name())] = plainValue(v)
		}
		return true
	})
	return values
}

func plainValue(v protoreflect.Value) any {
	if m, ok := v.Interface().(protoreflect.Message); ok {
		return named(m.Interface())
	}
	return v.Interface()
}

// sameNames says whether all fields of both messages have the names, so that they must have the values.
func sameNames(a, b protoreflect.MessageDescriptor) bool {
	for i := range a.Fields().Len() {
		f := a.Fields().Get(i)
		g := b.Fields().ByName(f.Name())
		switch {
		case g == nil || f.IsMap() != g.IsMap():
			return false
		case f.IsMap() && f.MapValue().Message() != nil:
			if !sameNames(f.MapValue().Message(), g.MapValue().Message()) {
				return false
			}
		case !f.IsMap() && f.Message() != nil && !sameNames(f.Message(), g.Message()):
			return false
		}
	}
	return a.Fields().Len() == b.Fields().Len()
}

func TestPublishedClientsReachTheHubAndAreAnswered(t *testing.T) {
	for _, a := range loadAll(t) {
		t.Run(a.GroupVersion().String(), func(t *testing.T) {
			var call *Call
			var answer proto.Message
			conn := serve(t, a, func(_ context.Context, c *Call) (proto.Message, error) {
				call = c
				return answer, nil
			}, func(_ context.Context, method string, err error) { t.Errorf("%s: %v", method, err) })
			client := stubs[a.GroupVersion()](conn)
			for _, m := range a.Methods() {
				request := m.NewRequest()
				fill(request)
				answer = m.hub.response.New().Interface()
				fill(answer)
				response, err := invoke(t.Context(), client, m.Name, request)
				if err != nil {
					t.Errorf("%s: %v", m.FullMethod, err)
					continue
				}
				wantRequest, wantResponse := named(request), named(answer)
				plain := sameNames(request.ProtoReflect().Descriptor(), call.Request.ProtoReflect().Descriptor()) &&
					sameNames(response.ProtoReflect().Descriptor(), answer.ProtoReflect().Descriptor())
				if !plain {
					want, ok := renamed[m.Name]
					if !ok {
						t.Errorf("%s changes names, and the test does not know them", m.FullMethod)
						continue
					}
					wantRequest, wantResponse = named(want.request), named(want.response)
				}
				if diff := cmp.Diff(wantRequest, named(call.Request)); diff != "" {
					t.Errorf("%s: hub request (-want +got):\n%s", m.FullMethod, diff)
				}
				if diff := cmp.Diff(wantResponse, named(response)); diff != "" {
					t.Errorf("%s: response (-want +got):\n%s", m.FullMethod, diff)
				}
				wantCall := Call{Operation: m.Operation, Version: a.GroupVersion().Version, Method: m.Name, FullMethod: m.FullMethod, Request: call.Request, Served: request}
				if diff := cmp.Diff(wantCall, *call, protocmp.Transform()); diff != "" {
					t.Errorf("%s: call (-want +got):\n%s", m.FullMethod, diff)
				}
			}
		})
	}
}

// In v1alpha1 field 2 of RmdirRequest is context and field 3 is force; in the newest version field 2 is force.
func TestFieldsArePairedByNameAndNotByNumber(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		_, m := find(t, "filesystem", version, "Rmdir")
		tests := []struct {
			name string
			wire []byte // path "p", then fields by number
			want *fsapi.RmdirRequest
		}{
			{"field 2 is a context and forces nothing", []byte{0x0a, 1, 'p', 0x10, 1}, &fsapi.RmdirRequest{Path: "p"}},
			{"field 3 is force", []byte{0x0a, 1, 'p', 0x18, 1}, &fsapi.RmdirRequest{Path: "p", Force: true}},
			{"an unknown context changes nothing", []byte{0x0a, 1, 'p', 0x10, 7}, &fsapi.RmdirRequest{Path: "p"}},
			{"unknown fields are left behind", []byte{0x0a, 1, 'p', 0x20, 1, 0x28, 5}, &fsapi.RmdirRequest{Path: "p"}},
		}
		for _, tt := range tests {
			t.Run(version+" "+tt.name, func(t *testing.T) {
				request := m.NewRequest()
				if err := proto.Unmarshal(tt.wire, request); err != nil {
					t.Fatal(err)
				}
				call, err := m.Call(request)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, call.Request, protocmp.Transform()); diff != "" {
					t.Errorf("hub request (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestUnknownFieldsOfTheNewestVersionAreLeftBehindToo(t *testing.T) {
	_, m := find(t, "filesystem", "v2alpha1", "Mkdir")
	request := &fsapi.MkdirRequest{}
	if err := proto.Unmarshal([]byte{0x0a, 1, 'p', 0x7a, 1, 'x'}, request); err != nil {
		t.Fatal(err)
	}
	if len(request.ProtoReflect().GetUnknown()) == 0 {
		t.Fatal("the request has no unknown field")
	}
	call, err := m.Call(request)
	if err != nil {
		t.Fatal(err)
	}
	if len(call.Request.ProtoReflect().GetUnknown()) != 0 {
		t.Error("the hub request carries bytes that nobody has read")
	}
}
