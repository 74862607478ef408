package handler_test

import (
	"strings"
	"testing"

	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	sysapi "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volapi "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

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
	}
}

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

func TestEveryRequestWithAPathIsInTheTestAbove(t *testing.T) {
	covered := map[string]bool{}
	for _, requests := range requestsWith("x") {
		for _, r := range requests {
			covered[string(protoadapt.MessageV2Of(r).ProtoReflect().Descriptor().FullName())] = true
		}
	}
	apis, err := apiserver.Load("filesystem", "volume", "system")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range apis {
		if a.GroupVersion().Version != "v2alpha1" && a.GroupVersion().Group != "system" {
			continue
		}
		for _, m := range a.Methods() {
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
			&fsapi.RmdirContentsRequest{Path: path}:                                "filesystem",
			&fsapi.CreateSymlinkRequest{SourcePath: root + `\x`, TargetPath: path}: "filesystem",
			&volapi.MountVolumeRequest{VolumeId: volume, TargetPath: path}:         "volume",
			&volapi.UnmountVolumeRequest{VolumeId: volume, TargetPath: path}:       "volume",
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

func TestRequestsWithBadFieldsAreRefused(t *testing.T) {
	target := root + `\pods\m`
	const other = `C:\`
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
		})
	}
	if did := n.host.Ledger(); len(did) != 0 {
		t.Errorf("the host has done %+v", did)
	}
}
