package handler_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	first "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1alpha1"
	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbapi "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	sysapi "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volapi "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
)

// foreign are paths that name nothing within the working directory.
var foreign = []string{
	``, ` `, `.`, `kubelet`, `C:`, `C:\`, `C:\Windows`, `C:\var\lib`, `C:\var\lib\kubelet-evil\x`, `C:\var\lib\kubelet\..\x`, `C:\var\lib\kubelet\a\..\b`,
	`C:/var/lib/kubelet/x`, `D:\var\lib\kubelet\x`, `\var\lib\kubelet\x`, `\\server\share\x`, `\\?\C:\var\lib\kubelet\x`, `\\.\C:\var\lib\kubelet\x`,
	`C:\var\lib\kubelet\x:stream`, `C:\var\lib\kubelet\a` + "\x00", `C:\var\lib\` + "\u212a" + `ubelet\x`, `C:\var\lib\kubelet\` + strings.Repeat("a", 300),
}

// requestsWith are all requests that carry a path, with that path.
func requestsWith(path string) map[string][]protoadapt.MessageV1 {
	good := root + `\ok`
	return map[string][]protoadapt.MessageV1{
		"filesystem": {
			&fsapi.PathExistsRequest{Path: path}, &fsapi.MkdirRequest{Path: path}, &fsapi.RmdirRequest{Path: path}, &fsapi.RmdirRequest{Path: path, Force: true},
			&fsapi.RmdirContentsRequest{Path: path}, &fsapi.IsSymlinkRequest{Path: path},
			&fsapi.CreateSymlinkRequest{SourcePath: path, TargetPath: good}, &fsapi.CreateSymlinkRequest{SourcePath: good, TargetPath: path},
		},
		"volume": {
			&volapi.MountVolumeRequest{VolumeId: volume, TargetPath: path}, &volapi.UnmountVolumeRequest{VolumeId: volume, TargetPath: path},
			&volapi.GetVolumeIDFromTargetPathRequest{TargetPath: path}, &volapi.GetClosestVolumeIDFromTargetPathRequest{TargetPath: path},
		},
		"smb": {
			// An empty local path asks for no link.
			&smbapi.NewSmbGlobalMappingRequest{RemotePath: string(fakehost.OfferedShare), LocalPath: cmp.Or(path, " ")},
			&smbapi.NewSmbGlobalMappingRequest{RemotePath: notRemote(path)}, &smbapi.RemoveSmbGlobalMappingRequest{RemotePath: notRemote(path)},
		},
	}
}

// notRemote spares the one path that is foreign here and at home on another machine.
func notRemote(path string) string { return strings.TrimPrefix(path, `\`) }

func TestNoRequestReachesTheHostWithAForeignPath(t *testing.T) {
	n := newNode(t, fakehost.Options{})
	for _, path := range foreign {
		for group, requests := range requestsWith(path) {
			for _, request := range requests {
				if _, err := n.call(t.Context(), group, request); status.Code(err) != codes.InvalidArgument {
					t.Errorf("%T with path %.60q: error = %v", request, path, err)
				}
			}
		}
	}
	if did := n.host.Ledger(); len(did) != 0 {
		t.Errorf("the host has done %+v", did)
	}
}

// newest are the versions whose messages hosts are asked with.
var newest = map[string]string{"disk": "v1", "filesystem": "v2alpha1", "volume": "v2alpha1", "smb": "v1", "system": "v1alpha1", "iscsi": "v1alpha2"}

func TestEveryRequestWithAPathIsInTheTestAbove(t *testing.T) {
	covered := map[string]bool{}
	for _, requests := range requestsWith("x") {
		for _, r := range requests {
			covered[string(protoadapt.MessageV2Of(r).ProtoReflect().Descriptor().FullName())] = true
		}
	}
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range apis {
		for _, m := range a.Methods() {
			if m.Name != m.Operation.Name || newest[a.GroupVersion().Group] != a.GroupVersion().Version {
				continue
			}
			d := m.NewRequest().ProtoReflect().Descriptor()
			for i := range d.Fields().Len() {
				if strings.Contains(string(d.Fields().Get(i).Name()), "path") && !covered[string(d.FullName())] {
					t.Errorf("%s has a path that no test refuses", d.FullName())
				}
			}
		}
	}
}

func TestTheWorkingDirectoryItselfIsNotChanged(t *testing.T) {
	n := newNode(t, fakehost.Options{})
	for _, path := range []string{root, root + `\`, strings.ToUpper(root)} {
		for request, group := range map[protoadapt.MessageV1]string{
			&fsapi.RmdirRequest{Path: path}: "filesystem", &fsapi.RmdirRequest{Path: path, Force: true}: "filesystem",
			&fsapi.RmdirContentsRequest{Path: path}:                                                        "filesystem",
			&smbapi.NewSmbGlobalMappingRequest{RemotePath: string(fakehost.OfferedShare), LocalPath: path}: "smb",
			&fsapi.CreateSymlinkRequest{SourcePath: root + `\x`, TargetPath: path}:                         "filesystem",
			&volapi.MountVolumeRequest{VolumeId: volume, TargetPath: path}:                                 "volume",
			&volapi.UnmountVolumeRequest{VolumeId: volume, TargetPath: path}:                               "volume",
		} {
			if _, err := n.call(t.Context(), group, request); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%T of %s: error = %v", request, path, err)
			}
		}
	}
	if did := n.host.Ledger(); len(did) != 0 {
		t.Errorf("the host has done %+v", did)
	}
}

// shared are directories of the kubelet that hold the volumes of many.
var shared = []string{
	root + `\pods`, root + `\\PODS\\`, root + `\pods\0f5a`, root + `\pods\0f5a\volumes`, root + `\pods\0f5a\volumes\kubernetes.io~csi`,
	root + `\plugins\`, root + `\plugins\smb.csi.k8s.io`, root + `\plugins\kubernetes.io`, root + `\plugins\kubernetes.io\csi`, root + `\plugins\kubernetes.io\csi\pv`,
}

// The access list has a table of the paths that operations replace, for rules with paths. The handlers go by the same.
func TestWhatOfManyVolumesIsReplacedByNoMethod(t *testing.T) {
	s := newStack(t)
	refused := map[string]bool{}
	for _, m := range s.methods {
		fields := m.NewRequest().ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			f := fields.Get(i)
			if !slices.Contains([]string{"path", "source_path", "target_path", "local_path", "mount"}, string(f.Name())) {
				continue
			}
			for _, path := range shared {
				s.reset(t, fakehost.Options{})
				request := good(t, m)
				request.ProtoReflect().Set(f, protoreflect.ValueOfString(path))
				before := len(s.host.Ledger())
				_, err := s.call(t.Context(), m, wireOf(t, request))
				isRefused := status.Code(err) == codes.InvalidArgument && len(s.host.Ledger()) == before
				which, number := 0, 0
				for _, target := range apiserver.Targets(s.last) {
					if target.Kind != "path" {
						continue
					}
					if number++; target.Value == safepath.Canonical(path) {
						which = number
					}
				}
				if want := access.ReplacesPath(m.Operation.Name) == which; isRefused != want {
					t.Errorf("%s, %s %s: refused %t, want %t: %v", m.FullMethod, f.Name(), path, isRefused, want, err)
				}
				if isRefused {
					refused[m.Operation.Name] = true
				}
			}
		}
	}
	if len(refused) != 6 {
		t.Errorf("refused were %v", refused)
	}
}

func TestRequestsWithBadFieldsAreRefused(t *testing.T) {
	target := root + `\pods\m`
	const other = `C:\`
	const share, iqn = string(fakehost.DataShare), string(fakehost.OpenTarget)
	tests := []struct {
		name    string
		group   string
		request protoadapt.MessageV1
		text    string // at its beginning
	}{
		{"mount without a volume", "volume", &volapi.MountVolumeRequest{TargetPath: target}, "MountVolumeRequest.VolumeId is empty"},
		{"mount without a target", "volume", &volapi.MountVolumeRequest{VolumeId: volume}, "MountVolumeRequest.TargetPath is empty"},
		{"mount of something else", "volume", &volapi.MountVolumeRequest{VolumeId: other, TargetPath: target}, `volume id "C:\\" is not`},
		{"unmount without a volume", "volume", &volapi.UnmountVolumeRequest{TargetPath: target}, "volume id empty"},
		{"unmount without a target", "volume", &volapi.UnmountVolumeRequest{VolumeId: volume}, "target path empty"},
		{"unmount of something else", "volume", &volapi.UnmountVolumeRequest{VolumeId: other, TargetPath: target}, "volume id "},
		{"question without a volume", "volume", &volapi.IsVolumeFormattedRequest{}, "volume id empty"},
		{"question about something else", "volume", &volapi.IsVolumeFormattedRequest{VolumeId: other}, "volume id "},
		{"format without a volume", "volume", &volapi.FormatVolumeRequest{}, "volume id empty"},
		{"format of a drive", "volume", &volapi.FormatVolumeRequest{VolumeId: other}, "volume id "},
		{"resize without a volume", "volume", &volapi.ResizeVolumeRequest{SizeBytes: 1}, "volume id empty"},
		{"resize of something else", "volume", &volapi.ResizeVolumeRequest{VolumeId: other}, "volume id "},
		{"resize to less than nothing", "volume", &volapi.ResizeVolumeRequest{VolumeId: volume, SizeBytes: -1}, "size -1 of volume"},
		{"sizes without a volume", "volume", &volapi.GetVolumeStatsRequest{}, "volume id empty"},
		{"sizes of something else", "volume", &volapi.GetVolumeStatsRequest{VolumeId: other}, "volume id "},
		{"disk without a volume", "volume", &volapi.GetDiskNumberFromVolumeIDRequest{}, "volume id empty"},
		{"disk of something else", "volume", &volapi.GetDiskNumberFromVolumeIDRequest{VolumeId: other}, "volume id "},
		{"flush without a volume", "volume", &volapi.WriteVolumeCacheRequest{}, "volume id empty"},
		{"flush of something else", "volume", &volapi.WriteVolumeCacheRequest{VolumeId: other}, "volume id "},
		{"volume at no path", "volume", &volapi.GetVolumeIDFromTargetPathRequest{}, "target path is empty"},
		{"closest volume of no path", "volume", &volapi.GetClosestVolumeIDFromTargetPathRequest{}, "target path is empty"},
		{"disk without a name", "disk", &first.GetDiskNumberByNameRequest{}, "disk name empty"},
		{"disk with a long name", "disk", &first.GetDiskNumberByNameRequest{DiskName: strings.Repeat("x", 511)}, "disk name "},
		{"mapping of nothing", "smb", &smbapi.NewSmbGlobalMappingRequest{LocalPath: target}, "remote path is empty"},
		{"mapping of a server", "smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: `\\server`}, `remote path (\\server) is invalid`},
		{"mapping by an empty user", "smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: share, Password: "s3cret"}, "username is empty"},
		{"mapping by a line break", "smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: share, Username: "a\nb", Password: "s3cret"}, `username "a\nb" contains`},
		{"mapping by a long name", "smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: share, Username: strings.Repeat("u", 513)}, "username "},
		{"mapping with a long password", "smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: share, Username: "u", Password: strings.Repeat("s3cret", 100)}, "password is longer than 512 bytes"},
		{"mapping with a password that ends early", "smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: share, Username: "u", Password: "s3cret\x00"}, "password contains control characters"},
		{"removal of nothing", "smb", &smbapi.RemoveSmbGlobalMappingRequest{}, "remote path is empty"},
		{"removal of a device", "smb", &smbapi.RemoveSmbGlobalMappingRequest{RemotePath: `\\.\PhysicalDrive0`}, "remote path ("},
		{"addition of no portal", "iscsi", &iscsiapi.AddTargetPortalRequest{}, "target portal is empty"},
		{"addition of an empty portal", "iscsi", &iscsiapi.AddTargetPortalRequest{TargetPortal: &iscsiapi.TargetPortal{}}, "target portal address is empty"},
		{"addition of a query", "iscsi", &iscsiapi.AddTargetPortalRequest{TargetPortal: &iscsiapi.TargetPortal{TargetAddress: "x' OR '1'='1"}}, "target portal address "},
		{"addition of a port that would be cut off", "iscsi", &iscsiapi.AddTargetPortalRequest{TargetPortal: &iscsiapi.TargetPortal{TargetAddress: "a", TargetPort: 65536 + 3260}}, "target portal port 68796 is greater"},
		{"discovery of no portal", "iscsi", &iscsiapi.DiscoverTargetPortalRequest{}, "target portal is empty"},
		{"removal of no portal", "iscsi", &iscsiapi.RemoveTargetPortalRequest{}, "target portal is empty"},
		{"connection to no portal", "iscsi", &iscsiapi.ConnectTargetRequest{Iqn: iqn}, "target portal is empty"},
		{"connection to no target", "iscsi", &iscsiapi.ConnectTargetRequest{TargetPortal: portal}, "iqn is empty"},
		{"connection to a query", "iscsi", &iscsiapi.ConnectTargetRequest{TargetPortal: portal, Iqn: "iqn.2026-01.a:x' OR '1'='1"}, "iqn "},
		{"connection by an unknown way", "iscsi", &iscsiapi.ConnectTargetRequest{TargetPortal: portal, Iqn: iqn, AuthType: 9}, "invalid authentication type authType=9"},
		{"connection by an impossible way", "iscsi", &iscsiapi.ConnectTargetRequest{TargetPortal: portal, Iqn: iqn, AuthType: -1}, "invalid authentication type authType=-1"},
		{"connection without a secret", "iscsi", &iscsiapi.ConnectTargetRequest{TargetPortal: portal, Iqn: iqn, AuthType: 1, ChapUsername: "u"}, "CHAP secret is empty"},
		{"connection with a long secret", "iscsi", &iscsiapi.ConnectTargetRequest{TargetPortal: portal, Iqn: iqn, AuthType: 2, ChapSecret: strings.Repeat("s3cret", 100)}, "CHAP secret is longer"},
		{"connection by a line break", "iscsi", &iscsiapi.ConnectTargetRequest{TargetPortal: portal, Iqn: iqn, AuthType: 1, ChapUsername: "\n", ChapSecret: "s3cret"}, "CHAP username "},
		{"disconnection of no portal", "iscsi", &iscsiapi.DisconnectTargetRequest{Iqn: iqn}, "target portal is empty"},
		{"disconnection of no target", "iscsi", &iscsiapi.DisconnectTargetRequest{TargetPortal: portal}, "iqn is empty"},
		{"disks of no portal", "iscsi", &iscsiapi.GetTargetDisksRequest{Iqn: iqn}, "target portal is empty"},
		{"disks of no target", "iscsi", &iscsiapi.GetTargetDisksRequest{TargetPortal: portal}, "iqn is empty"},
		{"no secret for all", "iscsi", &iscsiapi.SetMutualChapSecretRequest{}, "mutual CHAP secret is empty"},
		{"a secret for all that is too long", "iscsi", &iscsiapi.SetMutualChapSecretRequest{MutualChapSecret: "s3cret-s3cret-s3c"}, "mutual CHAP secret is longer than 16 bytes"},
		{"a secret for all that ends early", "iscsi", &iscsiapi.SetMutualChapSecretRequest{MutualChapSecret: "s3cret\x00"}, "mutual CHAP secret contains"},
		{"start of no service", "system", &sysapi.StartServiceRequest{}, "service name empty"},
		{"start of a path", "system", &sysapi.StartServiceRequest{Name: `a\b`}, "service name "},
		{"stop of no service", "system", &sysapi.StopServiceRequest{Force: true}, "service name empty"},
		{"stop of a query", "system", &sysapi.StopServiceRequest{Name: "x' OR '1'='1"}, "service name "},
		{"question about no service", "system", &sysapi.GetServiceRequest{}, "service name empty"},
		{"question about a line break", "system", &sysapi.GetServiceRequest{Name: "a\nb"}, `service name "a\nb"`},
	}
	n := newNode(t, fakehost.Options{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := n.call(t.Context(), tt.group, tt.request)
			if st := status.Convert(err); st.Code() != codes.InvalidArgument || !strings.HasPrefix(st.Message(), tt.text) {
				t.Errorf("error = %v, want InvalidArgument and %q", err, tt.text)
			}
			if strings.Contains(status.Convert(err).Message(), "s3cret") {
				t.Errorf("the error tells the secret: %v", err)
			}
		})
	}
	if did := n.host.Ledger(); len(did) != 0 {
		t.Errorf("the host has done %+v", did)
	}
}
