package windows

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	diskv1api "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	diskv1alpha1api "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1alpha1"
	diskv1beta1api "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta1"
	diskv1beta2api "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta2"
	diskv1beta3api "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta3"
	fsv1api "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	fsv1alpha1api "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	fsv1beta1api "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta1"
	fsv1beta2api "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta2"
	fsv2alpha1api "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	iscsiv1alpha1api "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha1"
	iscsiv1alpha2api "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbv1api "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	smbv1alpha1api "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1alpha1"
	smbv1beta1api "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1beta1"
	smbv1beta2api "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1beta2"
	systemapi "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volv1api "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	volv1alpha1api "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1alpha1"
	volv1beta1api "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta1"
	volv1beta2api "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta2"
	volv1beta3api "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta3"
	volv2alpha1api "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	diskv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1alpha1"
	diskv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta1"
	diskv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta2"
	diskv1beta3 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta3"
	fsv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	fsv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1alpha1"
	fsv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1beta1"
	fsv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1beta2"
	fsv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v2alpha1"
	iscsiv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/iscsi/v1alpha1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/groups/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1"
	smbv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1alpha1"
	smbv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1beta1"
	smbv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1beta2"
	system "github.com/kubernetes-csi/csi-proxy/client/groups/system/v1alpha1"
	volv1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1"
	volv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1alpha1"
	volv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta1"
	volv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta2"
	volv1beta3 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta3"
	volv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v2alpha1"
	"golang.org/x/sys/windows"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
)

// allRules allow this very program every operation, and no dangerous step. Those that the request policy refuses to whoever is
// not named are spelled out beside the program and its account.
const allRules = `apiVersion: pipeguard.dev/v1alpha1
kind: ProxyConfig
acl:
  rules:
  - name: driver
    pipes: ["disk-*", "filesystem-*", "volume-*", "smb-*", "system-*", "iscsi-*"]
    operations: ["*"]
    callers:
    - exe: %[1]s
  - name: named
    pipes: ["disk-*", "volume-*", "system-*"]
    operations: [PartitionDisk, SetDiskState, FormatVolume, StartService, StopService]
    callers:
    - {user: %[2]s, exe: %[1]s}
`

// ownSID is the account that this program runs as.
func ownSID(t *testing.T) string {
	t.Helper()
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		t.Fatal(err)
	}
	return user.User.Sid.String()
}

// groupCall is one call of a published client, and what must come of it.
type groupCall struct {
	method string // "/v1.Disk/Rescan"
	code   codes.Code
	do     func(ctx context.Context) error
}

// asks is a call that succeeds with an answer for which is holds.
func asks[Request, Response any](method string, call func(context.Context, *Request, ...grpc.CallOption) (*Response, error), request *Request, is func(*Response) bool) groupCall {
	return groupCall{method, codes.OK, func(ctx context.Context) error {
		response, err := call(ctx, request)
		if err == nil && !is(response) {
			return fmt.Errorf("answered with %v", response)
		}
		return err
	}}
}

// does is a call that succeeds, whatever the answer.
func does[Request, Response any](method string, call func(context.Context, *Request, ...grpc.CallOption) (*Response, error), request *Request) groupCall {
	return asks(method, call, request, func(*Response) bool { return true })
}

// refused is a call that ends with a code.
func refused[Request, Response any](method string, code codes.Code, call func(context.Context, *Request, ...grpc.CallOption) (*Response, error), request *Request) groupCall {
	c := does(method, call, request)
	c.code = code
	return c
}

// groupCalls are calls of the published clients of every version. The smb group has none that only asks.
var groupCalls = map[string]func(t *testing.T, p *proxy) []groupCall{
	"filesystem-v1alpha1": func(t *testing.T, p *proxy) []groupCall {
		c := must(fsv1alpha1.NewClient())(t)
		return []groupCall{
			does("/v1alpha1.Filesystem/Mkdir", c.Mkdir, &fsv1alpha1api.MkdirRequest{Path: p.path("v1alpha1")}),
			asks("/v1alpha1.Filesystem/PathExists", c.PathExists, &fsv1alpha1api.PathExistsRequest{Path: p.path("v1alpha1")}, func(r *fsv1alpha1api.PathExistsResponse) bool { return r.GetExists() }),
			does("/v1alpha1.Filesystem/LinkPath", c.LinkPath, &fsv1alpha1api.LinkPathRequest{SourcePath: p.path("v1alpha1"), TargetPath: p.path("v1alpha1-link")}),
			asks("/v1alpha1.Filesystem/IsMountPoint", c.IsMountPoint, &fsv1alpha1api.IsMountPointRequest{Path: p.path("v1alpha1-link")}, func(r *fsv1alpha1api.IsMountPointResponse) bool { return r.GetIsMountPoint() }),
			refused("/v1alpha1.Filesystem/Mkdir", codes.InvalidArgument, c.Mkdir, &fsv1alpha1api.MkdirRequest{Path: `C:\Windows\x`}),
		}
	},
	"filesystem-v1beta1": func(t *testing.T, p *proxy) []groupCall {
		c := must(fsv1beta1.NewClient())(t)
		return []groupCall{
			does("/v1beta1.Filesystem/Mkdir", c.Mkdir, &fsv1beta1api.MkdirRequest{Path: p.path("v1beta1")}),
			asks("/v1beta1.Filesystem/PathExists", c.PathExists, &fsv1beta1api.PathExistsRequest{Path: p.path("v1beta1")}, func(r *fsv1beta1api.PathExistsResponse) bool { return r.GetExists() }),
			does("/v1beta1.Filesystem/LinkPath", c.LinkPath, &fsv1beta1api.LinkPathRequest{SourcePath: p.path("v1beta1"), TargetPath: p.path("v1beta1-link")}),
			asks("/v1beta1.Filesystem/IsMountPoint", c.IsMountPoint, &fsv1beta1api.IsMountPointRequest{Path: p.path("v1beta1-link")}, func(r *fsv1beta1api.IsMountPointResponse) bool { return r.GetIsMountPoint() }),
			refused("/v1beta1.Filesystem/Mkdir", codes.InvalidArgument, c.Mkdir, &fsv1beta1api.MkdirRequest{Path: `C:\Windows\x`}),
		}
	},
	"filesystem-v1beta2": func(t *testing.T, p *proxy) []groupCall {
		c := must(fsv1beta2.NewClient())(t)
		return []groupCall{
			does("/v1beta2.Filesystem/Mkdir", c.Mkdir, &fsv1beta2api.MkdirRequest{Path: p.path("v1beta2")}),
			asks("/v1beta2.Filesystem/PathExists", c.PathExists, &fsv1beta2api.PathExistsRequest{Path: p.path("v1beta2")}, func(r *fsv1beta2api.PathExistsResponse) bool { return r.GetExists() }),
			does("/v1beta2.Filesystem/CreateSymlink", c.CreateSymlink, &fsv1beta2api.CreateSymlinkRequest{SourcePath: p.path("v1beta2"), TargetPath: p.path("v1beta2-link")}),
			asks("/v1beta2.Filesystem/IsSymlink", c.IsSymlink, &fsv1beta2api.IsSymlinkRequest{Path: p.path("v1beta2-link")}, func(r *fsv1beta2api.IsSymlinkResponse) bool { return r.GetIsSymlink() }),
			refused("/v1beta2.Filesystem/Mkdir", codes.InvalidArgument, c.Mkdir, &fsv1beta2api.MkdirRequest{Path: `C:\Windows\x`}),
		}
	},
	"filesystem-v1": func(t *testing.T, p *proxy) []groupCall {
		c := must(fsv1.NewClient())(t)
		return []groupCall{
			does("/v1.Filesystem/Mkdir", c.Mkdir, &fsv1api.MkdirRequest{Path: p.path("v1")}),
			asks("/v1.Filesystem/PathExists", c.PathExists, &fsv1api.PathExistsRequest{Path: p.path("v1")}, func(r *fsv1api.PathExistsResponse) bool { return r.GetExists() }),
			does("/v1.Filesystem/CreateSymlink", c.CreateSymlink, &fsv1api.CreateSymlinkRequest{SourcePath: p.path("v1"), TargetPath: p.path("v1-link")}),
			asks("/v1.Filesystem/IsSymlink", c.IsSymlink, &fsv1api.IsSymlinkRequest{Path: p.path("v1-link")}, func(r *fsv1api.IsSymlinkResponse) bool { return r.GetIsSymlink() }),
			refused("/v1.Filesystem/Mkdir", codes.InvalidArgument, c.Mkdir, &fsv1api.MkdirRequest{Path: `C:\Windows\x`}),
		}
	},
	"filesystem-v2alpha1": func(t *testing.T, p *proxy) []groupCall {
		c := must(fsv2alpha1.NewClient())(t)
		return []groupCall{
			does("/v2alpha1.Filesystem/Mkdir", c.Mkdir, &fsv2alpha1api.MkdirRequest{Path: p.path("v2alpha1")}),
			asks("/v2alpha1.Filesystem/PathExists", c.PathExists, &fsv2alpha1api.PathExistsRequest{Path: p.path("v2alpha1")}, func(r *fsv2alpha1api.PathExistsResponse) bool { return r.GetExists() }),
			does("/v2alpha1.Filesystem/CreateSymlink", c.CreateSymlink, &fsv2alpha1api.CreateSymlinkRequest{SourcePath: p.path("v2alpha1"), TargetPath: p.path("v2alpha1-link")}),
			asks("/v2alpha1.Filesystem/IsSymlink", c.IsSymlink, &fsv2alpha1api.IsSymlinkRequest{Path: p.path("v2alpha1-link")}, func(r *fsv2alpha1api.IsSymlinkResponse) bool { return r.GetIsSymlink() }),
			refused("/v2alpha1.Filesystem/Mkdir", codes.InvalidArgument, c.Mkdir, &fsv2alpha1api.MkdirRequest{Path: `C:\Windows\x`}),
		}
	},
	"disk-v1alpha1": func(t *testing.T, p *proxy) []groupCall {
		c := must(diskv1alpha1.NewClient())(t)
		return []groupCall{
			asks("/v1alpha1.Disk/GetDiskNumberByName", c.GetDiskNumberByName, &diskv1alpha1api.GetDiskNumberByNameRequest{DiskName: page83}, func(r *diskv1alpha1api.GetDiskNumberByNameResponse) bool { return r.GetDiskNumber() == "1" }),
			does("/v1alpha1.Disk/PartitionDisk", c.PartitionDisk, &diskv1alpha1api.PartitionDiskRequest{DiskID: "3"}),
			refused("/v1alpha1.Disk/PartitionDisk", codes.InvalidArgument, c.PartitionDisk, &diskv1alpha1api.PartitionDiskRequest{DiskID: "4294967299"}),
		}
	},
	"disk-v1beta1": func(t *testing.T, p *proxy) []groupCall {
		c := must(diskv1beta1.NewClient())(t)
		return []groupCall{
			asks("/v1beta1.Disk/ListDiskIDs", c.ListDiskIDs, &diskv1beta1api.ListDiskIDsRequest{}, func(r *diskv1beta1api.ListDiskIDsResponse) bool {
				ids := r.GetDiskIDs()["1"].GetIdentifiers()
				return len(ids) == 2 && ids["page83"] == page83 && ids["serialNumber"] == "FAKE-DISK-1"
			}),
			does("/v1beta1.Disk/PartitionDisk", c.PartitionDisk, &diskv1beta1api.PartitionDiskRequest{DiskID: "3"}),
		}
	},
	"disk-v1beta2": func(t *testing.T, p *proxy) []groupCall {
		c := must(diskv1beta2.NewClient())(t)
		return []groupCall{
			does("/v1beta2.Disk/SetAttachState", c.SetAttachState, &diskv1beta2api.SetAttachStateRequest{DiskID: "3"}),
			asks("/v1beta2.Disk/GetAttachState", c.GetAttachState, &diskv1beta2api.GetAttachStateRequest{DiskID: "3"}, func(r *diskv1beta2api.GetAttachStateResponse) bool { return !r.GetIsOnline() }),
		}
	},
	"disk-v1beta3": func(t *testing.T, p *proxy) []groupCall {
		c := must(diskv1beta3.NewClient())(t)
		return []groupCall{
			does("/v1beta3.Disk/SetDiskState", c.SetDiskState, &diskv1beta3api.SetDiskStateRequest{DiskNumber: 3, IsOnline: true}),
			asks("/v1beta3.Disk/GetDiskState", c.GetDiskState, &diskv1beta3api.GetDiskStateRequest{DiskNumber: 3}, func(r *diskv1beta3api.GetDiskStateResponse) bool { return r.GetIsOnline() }),
		}
	},
	"disk-v1": func(t *testing.T, p *proxy) []groupCall {
		c := must(diskv1.NewClient())(t)
		return []groupCall{
			asks("/v1.Disk/GetDiskStats", c.GetDiskStats, &diskv1api.GetDiskStatsRequest{DiskNumber: 3}, func(r *diskv1api.GetDiskStatsResponse) bool { return r.GetTotalBytes() == 8<<30 }),
			does("/v1.Disk/Rescan", c.Rescan, &diskv1api.RescanRequest{}),
			refused("/v1.Disk/PartitionDisk", codes.PermissionDenied, c.PartitionDisk, &diskv1api.PartitionDiskRequest{DiskNumber: 0}),
		}
	},
	"volume-v1alpha1": func(t *testing.T, p *proxy) []groupCall {
		c := must(volv1alpha1.NewClient())(t)
		return []groupCall{
			asks("/v1alpha1.Volume/ListVolumesOnDisk", c.ListVolumesOnDisk, &volv1alpha1api.ListVolumesOnDiskRequest{DiskId: "1"}, func(r *volv1alpha1api.ListVolumesOnDiskResponse) bool { return len(r.GetVolumeIds()) == 1 }),
			does("/v1alpha1.Volume/MountVolume", c.MountVolume, &volv1alpha1api.MountVolumeRequest{VolumeId: string(fakehost.FormattedVolume), Path: p.path("v1")}),
		}
	},
	"volume-v1beta1": func(t *testing.T, p *proxy) []groupCall {
		c := must(volv1beta1.NewClient())(t)
		return []groupCall{
			asks("/v1beta1.Volume/GetVolumeIDFromMount", c.GetVolumeIDFromMount, &volv1beta1api.VolumeIDFromMountRequest{Mount: p.path("v1")}, func(r *volv1beta1api.VolumeIDFromMountResponse) bool {
				return r.GetVolumeId() == string(fakehost.FormattedVolume)
			}),
			does("/v1beta1.Volume/DismountVolume", c.DismountVolume, &volv1beta1api.DismountVolumeRequest{VolumeId: string(fakehost.FormattedVolume), Path: p.path("v1")}),
			refused("/v1beta1.Volume/GetVolumeIDFromMount", codes.FailedPrecondition, c.GetVolumeIDFromMount, &volv1beta1api.VolumeIDFromMountRequest{Mount: p.path("v1")}),
		}
	},
	"volume-v1beta2": func(t *testing.T, p *proxy) []groupCall {
		c := must(volv1beta2.NewClient())(t)
		return []groupCall{
			does("/v1beta2.Volume/ResizeVolume", c.ResizeVolume, &volv1beta2api.ResizeVolumeRequest{VolumeId: string(fakehost.FormattedVolume)}),
			asks("/v1beta2.Volume/VolumeStats", c.VolumeStats, &volv1beta2api.VolumeStatsRequest{VolumeId: string(fakehost.FormattedVolume)}, func(r *volv1beta2api.VolumeStatsResponse) bool { return r.GetVolumeSize() == 20<<30 }),
		}
	},
	"volume-v1beta3": func(t *testing.T, p *proxy) []groupCall {
		c := must(volv1beta3.NewClient())(t)
		return []groupCall{
			does("/v1beta3.Volume/FormatVolume", c.FormatVolume, &volv1beta3api.FormatVolumeRequest{VolumeId: string(fakehost.UnformattedVolume)}),
			asks("/v1beta3.Volume/IsVolumeFormatted", c.IsVolumeFormatted, &volv1beta3api.IsVolumeFormattedRequest{VolumeId: string(fakehost.UnformattedVolume)}, func(r *volv1beta3api.IsVolumeFormattedResponse) bool { return r.GetFormatted() }),
		}
	},
	"volume-v1": func(t *testing.T, p *proxy) []groupCall {
		c := must(volv1.NewClient())(t)
		return []groupCall{
			asks("/v1.Volume/GetDiskNumberFromVolumeID", c.GetDiskNumberFromVolumeID, &volv1api.GetDiskNumberFromVolumeIDRequest{VolumeId: string(fakehost.UnformattedVolume)}, func(r *volv1api.GetDiskNumberFromVolumeIDResponse) bool { return r.GetDiskNumber() == 2 }),
			does("/v1.Volume/WriteVolumeCache", c.WriteVolumeCache, &volv1api.WriteVolumeCacheRequest{VolumeId: string(fakehost.FormattedVolume)}),
			refused("/v1.Volume/FormatVolume", codes.AlreadyExists, c.FormatVolume, &volv1api.FormatVolumeRequest{VolumeId: string(fakehost.FormattedVolume)}),
		}
	},
	"volume-v2alpha1": func(t *testing.T, p *proxy) []groupCall {
		c := must(volv2alpha1.NewClient())(t)
		return []groupCall{
			asks("/v2alpha1.Volume/GetClosestVolumeIDFromTargetPath", c.GetClosestVolumeIDFromTargetPath, &volv2alpha1api.GetClosestVolumeIDFromTargetPathRequest{TargetPath: p.path("v1")}, func(r *volv2alpha1api.GetClosestVolumeIDFromTargetPathResponse) bool {
				return r.GetVolumeId() == string(fakehost.SystemVolume)
			}),
			does("/v2alpha1.Volume/UnmountVolume", c.UnmountVolume, &volv2alpha1api.UnmountVolumeRequest{VolumeId: string(fakehost.FormattedVolume), TargetPath: p.path("v1")}),
		}
	},
	"smb-v1alpha1": func(t *testing.T, p *proxy) []groupCall {
		c := must(smbv1alpha1.NewClient())(t)
		return []groupCall{
			refused("/v1alpha1.Smb/NewSmbGlobalMapping", codes.PermissionDenied, c.NewSmbGlobalMapping, &smbv1alpha1api.NewSmbGlobalMappingRequest{RemotePath: string(fakehost.DataShare), Username: fakehost.DataUser, Password: "not-the-pass"}),
			does("/v1alpha1.Smb/NewSmbGlobalMapping", c.NewSmbGlobalMapping, &smbv1alpha1api.NewSmbGlobalMappingRequest{
				RemotePath: `//FILES.example/data/Sub`, LocalPath: p.path("smb-v1alpha1"), Username: fakehost.DataUser, Password: fakehost.DataPassword,
			}),
			does("/v1alpha1.Smb/RemoveSmbGlobalMapping", c.RemoveSmbGlobalMapping, &smbv1alpha1api.RemoveSmbGlobalMappingRequest{RemotePath: string(fakehost.DataShare)}),
			refused("/v1alpha1.Smb/RemoveSmbGlobalMapping", codes.NotFound, c.RemoveSmbGlobalMapping, &smbv1alpha1api.RemoveSmbGlobalMappingRequest{RemotePath: string(fakehost.DataShare)}),
		}
	},
	"smb-v1beta1": func(t *testing.T, p *proxy) []groupCall {
		c := must(smbv1beta1.NewClient())(t)
		return []groupCall{
			refused("/v1beta1.Smb/NewSmbGlobalMapping", codes.PermissionDenied, c.NewSmbGlobalMapping, &smbv1beta1api.NewSmbGlobalMappingRequest{RemotePath: string(fakehost.DataShare), Username: fakehost.DataUser, Password: "not-the-pass"}),
			does("/v1beta1.Smb/NewSmbGlobalMapping", c.NewSmbGlobalMapping, &smbv1beta1api.NewSmbGlobalMappingRequest{
				RemotePath: `//FILES.example/data/Sub`, LocalPath: p.path("smb-v1beta1"), Username: fakehost.DataUser, Password: fakehost.DataPassword,
			}),
			does("/v1beta1.Smb/RemoveSmbGlobalMapping", c.RemoveSmbGlobalMapping, &smbv1beta1api.RemoveSmbGlobalMappingRequest{RemotePath: string(fakehost.DataShare)}),
			refused("/v1beta1.Smb/RemoveSmbGlobalMapping", codes.NotFound, c.RemoveSmbGlobalMapping, &smbv1beta1api.RemoveSmbGlobalMappingRequest{RemotePath: string(fakehost.DataShare)}),
		}
	},
	"smb-v1beta2": func(t *testing.T, p *proxy) []groupCall {
		c := must(smbv1beta2.NewClient())(t)
		return []groupCall{
			refused("/v1beta2.Smb/NewSmbGlobalMapping", codes.PermissionDenied, c.NewSmbGlobalMapping, &smbv1beta2api.NewSmbGlobalMappingRequest{RemotePath: string(fakehost.DataShare), Username: fakehost.DataUser, Password: "not-the-pass"}),
			does("/v1beta2.Smb/NewSmbGlobalMapping", c.NewSmbGlobalMapping, &smbv1beta2api.NewSmbGlobalMappingRequest{
				RemotePath: `//FILES.example/data/Sub`, LocalPath: p.path("smb-v1beta2"), Username: fakehost.DataUser, Password: fakehost.DataPassword,
			}),
			does("/v1beta2.Smb/RemoveSmbGlobalMapping", c.RemoveSmbGlobalMapping, &smbv1beta2api.RemoveSmbGlobalMappingRequest{RemotePath: string(fakehost.DataShare)}),
			refused("/v1beta2.Smb/RemoveSmbGlobalMapping", codes.NotFound, c.RemoveSmbGlobalMapping, &smbv1beta2api.RemoveSmbGlobalMappingRequest{RemotePath: string(fakehost.DataShare)}),
		}
	},
	"smb-v1": func(t *testing.T, p *proxy) []groupCall {
		c := must(smbv1.NewClient())(t)
		return []groupCall{
			refused("/v1.Smb/NewSmbGlobalMapping", codes.PermissionDenied, c.NewSmbGlobalMapping, &smbv1api.NewSmbGlobalMappingRequest{RemotePath: string(fakehost.DataShare), Username: fakehost.DataUser, Password: "not-the-pass"}),
			does("/v1.Smb/NewSmbGlobalMapping", c.NewSmbGlobalMapping, &smbv1api.NewSmbGlobalMappingRequest{
				RemotePath: `//FILES.example/data/Sub`, LocalPath: p.path("smb-v1"), Username: fakehost.DataUser, Password: fakehost.DataPassword,
			}),
			does("/v1.Smb/RemoveSmbGlobalMapping", c.RemoveSmbGlobalMapping, &smbv1api.RemoveSmbGlobalMappingRequest{RemotePath: string(fakehost.DataShare)}),
			refused("/v1.Smb/RemoveSmbGlobalMapping", codes.NotFound, c.RemoveSmbGlobalMapping, &smbv1api.RemoveSmbGlobalMappingRequest{RemotePath: string(fakehost.DataShare)}),
		}
	},
	"system-v1alpha1": func(t *testing.T, p *proxy) []groupCall {
		c := must(system.NewClient())(t)
		return []groupCall{
			does("/v1alpha1.System/StartService", c.StartService, &systemapi.StartServiceRequest{Name: "MSiSCSI"}),
			asks("/v1alpha1.System/GetService", c.GetService, &systemapi.GetServiceRequest{Name: "MSiSCSI"}, func(r *systemapi.GetServiceResponse) bool { return r.GetStatus() == systemapi.ServiceStatus_RUNNING }),
		}
	},
	"iscsi-v1alpha1": func(t *testing.T, p *proxy) []groupCall {
		c := must(iscsiv1alpha1.NewClient())(t)
		return []groupCall{
			refused("/v1alpha1.Iscsi/AddTargetPortal", codes.InvalidArgument, c.AddTargetPortal, &iscsiv1alpha1api.AddTargetPortalRequest{}),
			does("/v1alpha1.Iscsi/AddTargetPortal", c.AddTargetPortal, &iscsiv1alpha1api.AddTargetPortalRequest{TargetPortal: &iscsiv1alpha1api.TargetPortal{TargetAddress: fakehost.PortalAddress}}),
			asks("/v1alpha1.Iscsi/ListTargetPortals", c.ListTargetPortals, &iscsiv1alpha1api.ListTargetPortalsRequest{}, func(r *iscsiv1alpha1api.ListTargetPortalsResponse) bool {
				return len(r.GetTargetPortals()) == 1 && r.GetTargetPortals()[0].GetTargetPort() == 3260
			}),
			does("/v1alpha1.Iscsi/ConnectTarget", c.ConnectTarget, &iscsiv1alpha1api.ConnectTargetRequest{
				TargetPortal: &iscsiv1alpha1api.TargetPortal{TargetAddress: fakehost.PortalAddress}, Iqn: string(fakehost.CHAPTarget),
				AuthType: iscsiv1alpha1api.AuthenticationType_ONE_WAY_CHAP, ChapUsername: fakehost.CHAPUser, ChapSecret: fakehost.CHAPSecret,
			}),
			asks("/v1alpha1.Iscsi/GetTargetDisks", c.GetTargetDisks, &iscsiv1alpha1api.GetTargetDisksRequest{TargetPortal: &iscsiv1alpha1api.TargetPortal{TargetAddress: fakehost.PortalAddress}, Iqn: string(fakehost.CHAPTarget)}, func(r *iscsiv1alpha1api.GetTargetDisksResponse) bool {
				return len(r.GetDiskIDs()) == 1 && r.GetDiskIDs()[0] == "11"
			}),
		}
	},
	"iscsi-v1alpha2": func(t *testing.T, p *proxy) []groupCall {
		c := must(iscsiv1alpha2.NewClient())(t)
		return []groupCall{
			refused("/v1alpha2.Iscsi/AddTargetPortal", codes.InvalidArgument, c.AddTargetPortal, &iscsiv1alpha2api.AddTargetPortalRequest{}),
			does("/v1alpha2.Iscsi/AddTargetPortal", c.AddTargetPortal, &iscsiv1alpha2api.AddTargetPortalRequest{TargetPortal: &iscsiv1alpha2api.TargetPortal{TargetAddress: fakehost.PortalAddress}}),
			asks("/v1alpha2.Iscsi/ListTargetPortals", c.ListTargetPortals, &iscsiv1alpha2api.ListTargetPortalsRequest{}, func(r *iscsiv1alpha2api.ListTargetPortalsResponse) bool {
				return len(r.GetTargetPortals()) == 1 && r.GetTargetPortals()[0].GetTargetPort() == 3260
			}),
			does("/v1alpha2.Iscsi/SetMutualChapSecret", c.SetMutualChapSecret, &iscsiv1alpha2api.SetMutualChapSecretRequest{MutualChapSecret: fakehost.MutualSecret}),
			does("/v1alpha2.Iscsi/ConnectTarget", c.ConnectTarget, &iscsiv1alpha2api.ConnectTargetRequest{
				TargetPortal: &iscsiv1alpha2api.TargetPortal{TargetAddress: fakehost.PortalAddress}, Iqn: string(fakehost.MutualTarget),
				AuthType: iscsiv1alpha2api.AuthenticationType_MUTUAL_CHAP, ChapUsername: fakehost.CHAPUser, ChapSecret: fakehost.CHAPSecret,
			}),
			asks("/v1alpha2.Iscsi/GetTargetDisks", c.GetTargetDisks, &iscsiv1alpha2api.GetTargetDisksRequest{TargetPortal: &iscsiv1alpha2api.TargetPortal{TargetAddress: fakehost.PortalAddress}, Iqn: string(fakehost.MutualTarget)}, func(r *iscsiv1alpha2api.GetTargetDisksResponse) bool {
				return len(r.GetDiskIDs()) == 1 && r.GetDiskIDs()[0] == "12"
			}),
		}
	},
}

// page83 is the name of the memory host's disk 1.
const page83 = "60022480000000000000000000000001"

// allVersions are in an order in which each finds what it needs: directories first.
var allVersions = []string{
	"filesystem-v1alpha1", "filesystem-v1beta1", "filesystem-v1beta2", "filesystem-v1", "filesystem-v2alpha1", "disk-v1alpha1",
	"disk-v1beta1", "disk-v1beta2", "disk-v1beta3", "disk-v1", "volume-v1alpha1", "volume-v1beta1",
	"volume-v1beta2", "volume-v1beta3", "volume-v1", "volume-v2alpha1", "smb-v1alpha1", "smb-v1beta1",
	"smb-v1beta2", "smb-v1", "system-v1alpha1", "iscsi-v1alpha1", "iscsi-v1alpha2",
}

func TestEveryVersionOfEveryGroupIsServedOnItsPipe(t *testing.T) {
	if len(allVersions) != 23 || len(groupCalls) != len(allVersions) {
		t.Fatalf("%d versions are called, and there are calls for %d", len(allVersions), len(groupCalls))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, allRules, strconv.Quote(self), ownSID(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "--host", "memory", "--config", config)
	for _, version := range allVersions {
		p.awaitPipe(`\\.\pipe\csi-proxy-`+version, nil)
	}
	called := map[string]bool{}
	for _, version := range allVersions {
		t.Run(version, func(t *testing.T) {
			for _, call := range groupCalls[version](t, p) {
				called[call.method] = true
				err := call.do(bounded(t))
				if status.Code(err) != call.code {
					t.Errorf("%s: %v, want %v", call.method, err, call.code)
				}
			}
		})
	}
	for method := range called {
		if _, end := p.terminal(method, ""); end.Outcome.Result == audit.ResultDenied || end.Who.Process == nil {
			t.Errorf("%s is recorded as %+v by %+v", method, end.Outcome, end.Who)
		}
	}
	p.reconciles()
	records := p.lines()
	log, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{fakehost.DataPassword, "not-the-pass", fakehost.CHAPSecret, fakehost.MutualSecret} {
		if strings.Contains(records+string(log), secret) {
			t.Errorf("a secret is in the records or the log: %s", secret)
		}
	}
}
