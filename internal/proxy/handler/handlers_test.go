package handler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	diskapi "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	first "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1alpha1"
	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbapi "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	sysapi "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volapi "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

const root = `C:\var\lib\kubelet`

const volume = string(fakehost.FormattedVolume)

var portal = &iscsiapi.TargetPortal{TargetAddress: fakehost.PortalAddress}

type node struct {
	host     *fakehost.Host
	handlers *handler.Handlers
	permits  handler.Permits
}

func newNode(t testing.TB, o fakehost.Options) node {
	t.Helper()
	roots, err := safepath.NewRoots(root)
	if err != nil {
		t.Fatal(err)
	}
	o.Roots = roots
	host := fakehost.New(o)
	handlers, err := handler.New(all(host), roots)
	if err != nil {
		t.Fatal(err)
	}
	return node{host, handlers, handler.Permits{}}
}

// all offers every group of a host.
func all(host *fakehost.Host) handler.Hosts {
	return handler.Hosts{Disk: host, Filesystem: host, Volume: host, SMB: host, ISCSI: host, System: host}
}

// call carries out an operation; its name is the request's without "Request".
func (n node) call(ctx context.Context, group string, request protoadapt.MessageV1) (proto.Message, error) {
	m := protoadapt.MessageV2Of(request)
	name := strings.TrimSuffix(string(m.ProtoReflect().Descriptor().Name()), "Request")
	return n.handlers.Handle(ctx, &apiserver.Call{Operation: &apiserver.Operation{Group: group, Name: name}, Request: m, Permits: n.permits})
}

func TestHostErrorsReachTheClientWithTheirCode(t *testing.T) {
	n := newNode(t, fakehost.Options{})
	if _, err := n.call(t.Context(), "filesystem", &fsapi.MkdirRequest{Path: root + `\full\x`}); err != nil {
		t.Fatal(err)
	}
	unknown := strings.Replace(volume, "0", "f", 1)
	tests := []struct {
		group   string
		request protoadapt.MessageV1
		want    codes.Code
	}{
		{"filesystem", &fsapi.RmdirRequest{Path: root + `\none`}, codes.NotFound},
		{"filesystem", &fsapi.RmdirRequest{Path: root + `\full`}, codes.AlreadyExists},
		{"filesystem", &fsapi.IsSymlinkRequest{Path: root + `\none`}, codes.NotFound},
		{"filesystem", &fsapi.RmdirContentsRequest{Path: root + `\none`}, codes.NotFound},
		{"filesystem", &fsapi.CreateSymlinkRequest{SourcePath: root, TargetPath: root + `\full`}, codes.AlreadyExists},
		{"volume", &volapi.FormatVolumeRequest{VolumeId: volume}, codes.AlreadyExists},
		{"volume", &volapi.FormatVolumeRequest{VolumeId: string(fakehost.SystemVolume)}, codes.PermissionDenied},
		{"volume", &volapi.ResizeVolumeRequest{VolumeId: volume, SizeBytes: 1 << 60}, codes.FailedPrecondition},
		{"volume", &volapi.GetVolumeStatsRequest{VolumeId: unknown}, codes.NotFound},
		{"volume", &volapi.GetVolumeIDFromTargetPathRequest{TargetPath: root + `\full`}, codes.FailedPrecondition},
		{"volume", &volapi.MountVolumeRequest{VolumeId: volume, TargetPath: root + `\full`}, codes.AlreadyExists},
		{"volume", &volapi.ResizeVolumeRequest{VolumeId: string(fakehost.SystemVolume)}, codes.PermissionDenied},
		{"volume", &volapi.MountVolumeRequest{VolumeId: string(fakehost.SystemVolume), TargetPath: root + `\full\x`}, codes.PermissionDenied},
		{"disk", &diskapi.PartitionDiskRequest{}, codes.PermissionDenied},
		{"disk", &diskapi.PartitionDiskRequest{DiskNumber: 99}, codes.NotFound},
		{"disk", &diskapi.SetDiskStateRequest{DiskNumber: 0}, codes.PermissionDenied},
		{"disk", &diskapi.SetDiskStateRequest{DiskNumber: 99}, codes.NotFound},
		{"disk", &diskapi.GetDiskStateRequest{DiskNumber: 99}, codes.NotFound},
		{"disk", &diskapi.GetDiskStatsRequest{DiskNumber: 99}, codes.NotFound},
		{"disk", &first.GetDiskNumberByNameRequest{DiskName: "none"}, codes.NotFound},
		{"smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: `\\a\b`, Username: "u"}, codes.NotFound},
		{"smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: string(fakehost.OfferedShare)}, codes.PermissionDenied},
		{"smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: string(fakehost.DataShare), Username: "u", Password: "s3cret"}, codes.PermissionDenied},
		{"smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: string(fakehost.DataShare), LocalPath: root + `\full`, Username: fakehost.DataUser, Password: fakehost.DataPassword}, codes.AlreadyExists},
		{"smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: string(fakehost.AbsentShare), Username: "u"}, codes.Unavailable},
		{"smb", &smbapi.RemoveSmbGlobalMappingRequest{RemotePath: string(fakehost.DataShare)}, codes.NotFound},
		{"iscsi", &iscsiapi.AddTargetPortalRequest{TargetPortal: &iscsiapi.TargetPortal{TargetAddress: "192.0.2.11"}}, codes.NotFound},
		{"iscsi", &iscsiapi.RemoveTargetPortalRequest{TargetPortal: portal}, codes.NotFound},
		{"iscsi", &iscsiapi.DiscoverTargetPortalRequest{TargetPortal: portal}, codes.NotFound},
		{"iscsi", &iscsiapi.ConnectTargetRequest{TargetPortal: portal, Iqn: string(fakehost.OpenTarget)}, codes.NotFound},
		{"system", &sysapi.StartServiceRequest{Name: "none"}, codes.NotFound},
		{"system", &sysapi.StopServiceRequest{Name: "RpcSs"}, codes.FailedPrecondition},
		{"system", &sysapi.StopServiceRequest{Name: "RpcSs", Force: true}, codes.PermissionDenied},
	}
	for _, tt := range tests {
		if _, err := n.call(t.Context(), tt.group, tt.request); status.Code(err) != tt.want {
			t.Errorf("%T %v: error = %v, want %v", tt.request, tt.request, err, tt.want)
		}
	}
}

func TestOperationsAreCarriedOut(t *testing.T) {
	n := newNode(t, fakehost.Options{})
	n.permits = handler.Permits{NodeAccount: true, Services: []string{"sessionenv"}}
	dir, link := root+`\work\m`, root+`\link`
	steps := []struct {
		group   string
		request protoadapt.MessageV1
		want    protoadapt.MessageV1
	}{
		{"filesystem", &fsapi.PathExistsRequest{Path: dir}, &fsapi.PathExistsResponse{}},
		{"filesystem", &fsapi.MkdirRequest{Path: dir}, &fsapi.MkdirResponse{}},
		{"filesystem", &fsapi.PathExistsRequest{Path: dir}, &fsapi.PathExistsResponse{Exists: true}},
		{"volume", &volapi.ListVolumesOnDiskRequest{DiskNumber: 1}, &volapi.ListVolumesOnDiskResponse{VolumeIds: []string{volume}}},
		{"volume", &volapi.ListVolumesOnDiskRequest{DiskNumber: 1, PartitionNumber: 9}, &volapi.ListVolumesOnDiskResponse{}},
		{"volume", &volapi.IsVolumeFormattedRequest{VolumeId: string(fakehost.UnformattedVolume)}, &volapi.IsVolumeFormattedResponse{}},
		{"volume", &volapi.FormatVolumeRequest{VolumeId: string(fakehost.UnformattedVolume)}, &volapi.FormatVolumeResponse{}},
		{"volume", &volapi.IsVolumeFormattedRequest{VolumeId: string(fakehost.UnformattedVolume)}, &volapi.IsVolumeFormattedResponse{Formatted: true}},
		{"volume", &volapi.MountVolumeRequest{VolumeId: strings.ToUpper(volume), TargetPath: dir}, &volapi.MountVolumeResponse{}},
		{"volume", &volapi.GetVolumeIDFromTargetPathRequest{TargetPath: dir}, &volapi.GetVolumeIDFromTargetPathResponse{VolumeId: volume}},
		{"volume", &volapi.GetClosestVolumeIDFromTargetPathRequest{TargetPath: root}, &volapi.GetClosestVolumeIDFromTargetPathResponse{VolumeId: string(fakehost.SystemVolume)}},
		{"volume", &volapi.GetDiskNumberFromVolumeIDRequest{VolumeId: volume}, &volapi.GetDiskNumberFromVolumeIDResponse{DiskNumber: 1}},
		{"volume", &volapi.GetVolumeStatsRequest{VolumeId: volume}, &volapi.GetVolumeStatsResponse{TotalBytes: 10 << 30, UsedBytes: 50 << 20}},
		{"volume", &volapi.ResizeVolumeRequest{VolumeId: volume}, &volapi.ResizeVolumeResponse{}},
		{"volume", &volapi.GetVolumeStatsRequest{VolumeId: volume}, &volapi.GetVolumeStatsResponse{TotalBytes: 20 << 30, UsedBytes: 50 << 20}},
		{"volume", &volapi.WriteVolumeCacheRequest{VolumeId: volume}, &volapi.WriteVolumeCacheResponse{}},
		{"filesystem", &fsapi.CreateSymlinkRequest{SourcePath: dir, TargetPath: link}, &fsapi.CreateSymlinkResponse{}},
		{"filesystem", &fsapi.IsSymlinkRequest{Path: link}, &fsapi.IsSymlinkResponse{IsSymlink: true}},
		{"volume", &volapi.UnmountVolumeRequest{VolumeId: volume, TargetPath: dir}, &volapi.UnmountVolumeResponse{}},
		{"filesystem", &fsapi.IsSymlinkRequest{Path: dir}, &fsapi.IsSymlinkResponse{}},
		{"filesystem", &fsapi.RmdirContentsRequest{Path: root + `\work`}, &fsapi.RmdirContentsResponse{}},
		{"filesystem", &fsapi.RmdirRequest{Path: root + `\work`}, &fsapi.RmdirResponse{}},
		{"disk", &diskapi.RescanRequest{}, &diskapi.RescanResponse{}},
		{"disk", &diskapi.GetDiskStateRequest{DiskNumber: fakehost.RawDisk}, &diskapi.GetDiskStateResponse{}},
		{"disk", &diskapi.PartitionDiskRequest{DiskNumber: fakehost.RawDisk}, &diskapi.PartitionDiskResponse{}},
		{"disk", &diskapi.PartitionDiskRequest{DiskNumber: fakehost.RawDisk}, &diskapi.PartitionDiskResponse{}},
		{"disk", &diskapi.GetDiskStateRequest{DiskNumber: fakehost.RawDisk}, &diskapi.GetDiskStateResponse{IsOnline: true}},
		{"disk", &diskapi.SetDiskStateRequest{DiskNumber: fakehost.RawDisk}, &diskapi.SetDiskStateResponse{}},
		{"disk", &diskapi.GetDiskStatsRequest{DiskNumber: fakehost.RawDisk}, &diskapi.GetDiskStatsResponse{TotalBytes: 8 << 30}},
		{"disk", &diskapi.ListDiskIDsRequest{}, &diskapi.ListDiskIDsResponse{DiskIDs: map[uint32]*diskapi.DiskIDs{
			0: {Page83: "60022480000000000000000000000000", SerialNumber: "FAKE-DISK-0"}, 1: {Page83: "60022480000000000000000000000001", SerialNumber: "FAKE-DISK-1"},
			2: {Page83: "60022480000000000000000000000002", SerialNumber: "FAKE-DISK-2"}, 3: {SerialNumber: "FAKE-DISK-3"}}}},
		{"disk", &diskapi.ListDiskLocationsRequest{}, &diskapi.ListDiskLocationsResponse{DiskLocations: map[uint32]*diskapi.DiskLocation{
			0: {Adapter: "0", Bus: "0", Target: "0", LUNID: "0"}, 1: {Adapter: "0", Bus: "0", Target: "0", LUNID: "1"}, 2: {Adapter: "0", Bus: "0", Target: "0", LUNID: "2"}}}},
		{"disk", &first.GetDiskNumberByNameRequest{DiskName: "60022480000000000000000000000002"}, &first.GetDiskNumberByNameResponse{DiskNumber: "2"}},
		{"smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: `//Files.example/DATA/Some/where`, LocalPath: root + `\data`, Username: fakehost.DataUser, Password: fakehost.DataPassword}, &smbapi.NewSmbGlobalMappingResponse{}},
		{"filesystem", &fsapi.IsSymlinkRequest{Path: root + `\data`}, &fsapi.IsSymlinkResponse{IsSymlink: true}},
		{"smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: string(fakehost.OfferedShare)}, &smbapi.NewSmbGlobalMappingResponse{}},
		{"smb", &smbapi.RemoveSmbGlobalMappingRequest{RemotePath: `\\FILES.example\data\else`}, &smbapi.RemoveSmbGlobalMappingResponse{}},
		{"iscsi", &iscsiapi.AddTargetPortalRequest{TargetPortal: portal}, &iscsiapi.AddTargetPortalResponse{}},
		{"iscsi", &iscsiapi.ListTargetPortalsRequest{}, &iscsiapi.ListTargetPortalsResponse{TargetPortals: []*iscsiapi.TargetPortal{{TargetAddress: fakehost.PortalAddress, TargetPort: 3260}}}},
		{"iscsi", &iscsiapi.DiscoverTargetPortalRequest{TargetPortal: portal}, &iscsiapi.DiscoverTargetPortalResponse{Iqns: []string{string(fakehost.OpenTarget), string(fakehost.CHAPTarget), string(fakehost.MutualTarget)}}},
		{"iscsi", &iscsiapi.SetMutualChapSecretRequest{MutualChapSecret: fakehost.MutualSecret}, &iscsiapi.SetMutualChapSecretResponse{}},
		{"iscsi", &iscsiapi.ConnectTargetRequest{TargetPortal: portal, Iqn: string(fakehost.OpenTarget), ChapUsername: "not", ChapSecret: "needed"}, &iscsiapi.ConnectTargetResponse{}},
		{"iscsi", &iscsiapi.ConnectTargetRequest{TargetPortal: portal, Iqn: string(fakehost.CHAPTarget), AuthType: iscsiapi.AuthenticationType_ONE_WAY_CHAP,
			ChapUsername: fakehost.CHAPUser, ChapSecret: fakehost.CHAPSecret}, &iscsiapi.ConnectTargetResponse{}},
		{"iscsi", &iscsiapi.ConnectTargetRequest{TargetPortal: portal, Iqn: string(fakehost.MutualTarget), AuthType: iscsiapi.AuthenticationType_MUTUAL_CHAP,
			ChapUsername: fakehost.CHAPUser, ChapSecret: fakehost.CHAPSecret}, &iscsiapi.ConnectTargetResponse{}},
		{"iscsi", &iscsiapi.GetTargetDisksRequest{TargetPortal: portal, Iqn: string(fakehost.CHAPTarget)}, &iscsiapi.GetTargetDisksResponse{DiskIDs: []string{"11"}}},
		{"iscsi", &iscsiapi.DisconnectTargetRequest{TargetPortal: portal, Iqn: string(fakehost.CHAPTarget)}, &iscsiapi.DisconnectTargetResponse{}},
		{"iscsi", &iscsiapi.GetTargetDisksRequest{TargetPortal: portal, Iqn: string(fakehost.CHAPTarget)}, &iscsiapi.GetTargetDisksResponse{}},
		{"iscsi", &iscsiapi.RemoveTargetPortalRequest{TargetPortal: portal}, &iscsiapi.RemoveTargetPortalResponse{}},
		{"system", &sysapi.GetBIOSSerialNumberRequest{}, &sysapi.GetBIOSSerialNumberResponse{SerialNumber: "FAKE-0000-0001"}},
		{"system", &sysapi.StartServiceRequest{Name: "msiscsi"}, &sysapi.StartServiceResponse{}},
		{"system", &sysapi.GetServiceRequest{Name: "MSiSCSI"}, &sysapi.GetServiceResponse{DisplayName: "Microsoft iSCSI Initiator Service",
			StartType: sysapi.StartType_MANUAL, Status: sysapi.ServiceStatus_RUNNING}},
		{"system", &sysapi.StopServiceRequest{Name: "RpcSs", Force: true}, &sysapi.StopServiceResponse{}},
	}
	for _, s := range steps {
		got, err := n.call(t.Context(), s.group, s.request)
		if err != nil {
			t.Fatalf("%T %v: %v", s.request, s.request, err)
		}
		if diff := cmp.Diff(protoadapt.MessageV2Of(s.want), got, protocmp.Transform()); diff != "" {
			t.Errorf("%T %v (-want +got):\n%s", s.request, s.request, diff)
		}
	}
	ledger := n.host.Ledger()
	if all := fmt.Sprintf("%+v", ledger); strings.Contains(all, "s3cret") {
		t.Error("the ledger has a secret")
	}
	if len(ledger) != len(steps) {
		t.Errorf("the host has done %d things for %d requests", len(ledger), len(steps))
	}
	at := slices.IndexFunc(ledger, func(e fakehost.Entry) bool { return e.Op == "MountVolume" })
	if at < 0 || !slices.Equal(ledger[at].Args, []string{volume, dir}) {
		t.Errorf("the host was not given the volume in its one spelling: %+v", ledger)
	}
}

func TestCancelledRequestsDoNotReachTheHost(t *testing.T) {
	n := newNode(t, fakehost.Options{})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithTimeout(t.Context(), -1)
	defer stop()
	for ctx, want := range map[context.Context]codes.Code{cancelled: codes.Canceled, late: codes.DeadlineExceeded} {
		for _, request := range []protoadapt.MessageV1{&fsapi.MkdirRequest{Path: root + `\x`}, &fsapi.PathExistsRequest{Path: root}} {
			if _, err := n.call(ctx, "filesystem", request); status.Code(err) != want {
				t.Errorf("%T: error = %v, want %v", request, err, want)
			}
		}
	}
	if did := n.host.Ledger(); len(did) != 0 {
		t.Errorf("the host has done %+v", did)
	}
}

func TestFaultsOfTheHostAreInternal(t *testing.T) {
	n := newNode(t, fakehost.Options{Fault: func(string, ...string) error { return errors.New("disk on fire") }})
	_, err := n.call(t.Context(), "filesystem", &fsapi.MkdirRequest{Path: root + `\x`})
	if st := status.Convert(err); st.Code() != codes.Internal || st.Message() != "disk on fire" {
		t.Errorf("error = %v", err)
	}
}

func TestTheHostKnowsWhoAskedForAMapping(t *testing.T) {
	n := newNode(t, fakehost.Options{})
	call := &apiserver.Call{Operation: &apiserver.Operation{Group: "smb", Name: "NewSmbGlobalMapping"}, Caller: "kube-system/csi-smb-node-sa",
		Request: protoadapt.MessageV2Of(&smbapi.NewSmbGlobalMappingRequest{RemotePath: string(fakehost.DataShare), Username: fakehost.DataUser, Password: fakehost.DataPassword})}
	if _, err := n.handlers.Handle(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	list, err := n.host.Mappings(t.Context())
	if diff := cmp.Diff([]handler.Mapping{{Share: fakehost.DataShare, Connected: true, By: call.Caller}}, list); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestPermitsReachTheHost(t *testing.T) {
	tests := []struct {
		group, operation string
		permits          handler.Permits
		request          protoadapt.MessageV1
	}{
		{"volume", "FormatVolume", handler.Permits{Reformat: true}, &volapi.FormatVolumeRequest{VolumeId: volume}},
		{"volume", "ResizeVolume", handler.Permits{SystemDisk: true}, &volapi.ResizeVolumeRequest{VolumeId: string(fakehost.SystemVolume)}},
		{"volume", "MountVolume", handler.Permits{SystemDisk: true}, &volapi.MountVolumeRequest{VolumeId: string(fakehost.SystemVolume), TargetPath: root + `\m`}},
		{"disk", "PartitionDisk", handler.Permits{SystemDisk: true}, &diskapi.PartitionDiskRequest{}},
		{"disk", "SetDiskState", handler.Permits{SystemDisk: true}, &diskapi.SetDiskStateRequest{}},
		{"smb", "NewSmbGlobalMapping", handler.Permits{NodeAccount: true}, &smbapi.NewSmbGlobalMappingRequest{RemotePath: string(fakehost.OfferedShare)}},
		{"system", "StopService", handler.Permits{Services: []string{"SessionEnv"}}, &sysapi.StopServiceRequest{Name: "RpcSs", Force: true}},
	}
	for _, tt := range tests {
		n := newNode(t, fakehost.Options{})
		if _, err := n.call(t.Context(), "filesystem", &fsapi.MkdirRequest{Path: root + `\m`}); err != nil {
			t.Fatal(err)
		}
		call := &apiserver.Call{Operation: &apiserver.Operation{Group: tt.group, Name: tt.operation}, Request: protoadapt.MessageV2Of(tt.request)}
		if _, err := n.handlers.Handle(t.Context(), call); err == nil {
			t.Errorf("%s without a permit is done", tt.operation)
		}
		call.Permits = tt.permits
		if _, err := n.handlers.Handle(t.Context(), call); err != nil {
			t.Errorf("%s with a permit: %v", tt.operation, err)
		}
	}
}
