package apiserver

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	diskapi "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	diskv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1alpha1"
	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbapi "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	sysapi "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volapi "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/google/go-cmp/cmp"
)

func validJSON(b []byte) bool { return json.Valid(b) && utf8.Valid(b) }

// callOf takes messages of both generators.
func callOf(group string, request any) *Call {
	m, ok := request.(proto.Message)
	if !ok {
		m = protoadapt.MessageV2Of(request.(protoadapt.MessageV1))
	}
	return &Call{Operation: &Operation{Group: group}, Request: m}
}

func TestParamsShowTheRequest(t *testing.T) {
	tests := []struct {
		name     string
		call     *Call
		want     string
		redacted []string
		targets  []Target
	}{
		{"an empty request", callOf("system", protoadapt.MessageV2Of(&sysapi.GetBIOSSerialNumberRequest{})), `{}`, nil, nil},
		{"fields that are not set are shown as what they mean", callOf("filesystem", &fsapi.RmdirRequest{Path: `C:\x`}),
			`{"path":"C:\\x","force":false}`, nil, []Target{{"path", `C:\x`}}},
		{"two paths in their order", callOf("filesystem", &fsapi.CreateSymlinkRequest{SourcePath: "s", TargetPath: "t"}),
			`{"source_path":"s","target_path":"t"}`, nil, []Target{{"path", "s"}, {"path", "t"}}},
		{"64-bit numbers are numbers", callOf("volume", &volapi.ResizeVolumeRequest{VolumeId: "v", SizeBytes: -1 << 63}),
			`{"volume_id":"v","size_bytes":-9223372036854775808}`, nil, []Target{{"volume", "v"}}},
		{"32-bit numbers", callOf("volume", &volapi.ListVolumesOnDiskRequest{DiskNumber: 1<<32 - 1}),
			`{"disk_number":4294967295,"partition_number":0}`, nil, []Target{{"disk", "4294967295"}}},
		{"a service", callOf("system", protoadapt.MessageV2Of(&sysapi.StopServiceRequest{Name: "x", Force: true})),
			`{"name":"x","force":true}`, nil, []Target{{"service", "x"}}},
		{"a line break is written as JSON writes it", callOf("filesystem", &fsapi.MkdirRequest{Path: "a\nb\u2028\"<"}),
			`{"path":"a\nb\u2028\"\u003c"}`, nil, []Target{{"path", "a\nb\u2028\"<"}}},
		{"text that is not UTF-8", callOf("filesystem", &fsapi.MkdirRequest{Path: "a\xff"}), `{"path":"a\ufffd"}`, nil, []Target{{"path", "a\xff"}}},
		{"enums by name, a list", callOf("system", protoadapt.MessageV2Of(&sysapi.GetServiceResponse{DisplayName: "d", StartType: sysapi.StartType_MANUAL, Status: 99})),
			`{"display_name":"d","start_type":"MANUAL","status":99}`, nil, nil},
		{"lists", callOf("volume", &volapi.ListVolumesOnDiskResponse{VolumeIds: []string{"a", "b"}}), `{"volume_ids":["a","b"]}`, nil, []Target{{"volume", "a"}, {"volume", "b"}}},
		{"a text that nobody has classified is withheld", callOf("nfs", &fsapi.CreateSymlinkRequest{SourcePath: "s3cret", TargetPath: "t"}),
			`{"source_path":"[redacted]","target_path":"[redacted]"}`, []string{"source_path", "target_path"}, nil},
		{"so is a list of them", callOf("nfs", &volapi.ListVolumesOnDiskResponse{VolumeIds: []string{"s3cret"}}),
			`{"volume_ids":"[redacted]"}`, []string{"volume_ids"}, nil},
		{"a disk by number, also the first", callOf("disk", &diskapi.SetDiskStateRequest{}), `{"disk_number":0,"is_online":false}`, nil, []Target{{"disk", "0"}}},
		{"a disk by name", callOf("disk", protoadapt.MessageV2Of(&diskv1alpha1.GetDiskNumberByNameRequest{DiskName: "Naa.1"})), `{"disk_name":"Naa.1"}`, nil, []Target{{"disk-name", "Naa.1"}}},
		{"a password is withheld, also an empty one", callOf("smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: `\\S\h`, LocalPath: `C:\l`, Username: "u"}),
			`{"remote_path":"\\\\S\\h","local_path":"C:\\l","username":"u","password":"[redacted]"}`, []string{"password"}, []Target{{"share", `\\s\h`}, {"path", `C:\l`}}},
		{"a portal with its secret", callOf("iscsi", &iscsiapi.ConnectTargetRequest{TargetPortal: &iscsiapi.TargetPortal{TargetAddress: "H"}, Iqn: "iqn.X", AuthType: 9, ChapUsername: "u", ChapSecret: "s3cret"}),
			`{"target_portal":{"target_address":"H","target_port":0},"iqn":"iqn.X","auth_type":9,"chap_username":"u","chap_secret":"[redacted]"}`, []string{"chap_secret"},
			[]Target{{"portal", "h:3260"}, {"target", "iqn.x"}}},
		{"no portal", callOf("iscsi", &iscsiapi.AddTargetPortalRequest{}), `{"target_portal":null}`, nil, nil},
		{"a portal without an address", callOf("iscsi", &iscsiapi.AddTargetPortalRequest{TargetPortal: &iscsiapi.TargetPortal{TargetPort: 1}}),
			`{"target_portal":{"target_address":"","target_port":1}}`, nil, nil},
		{"the secret of the node", callOf("iscsi", &iscsiapi.SetMutualChapSecretRequest{MutualChapSecret: "s3cret"}), `{"MutualChapSecret":"[redacted]"}`, []string{"MutualChapSecret"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			params, redacted := Params(tt.call)
			if string(params) != tt.want || !validJSON(params) {
				t.Errorf("params = %s, want %s", params, tt.want)
			}
			if diff := cmp.Diff(tt.redacted, redacted); diff != "" {
				t.Errorf("redacted (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.targets, Targets(tt.call)); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSpellingsOfOneThingAreOneTarget(t *testing.T) {
	const guid = `0000ABCD-0000-4000-8000-000000000001`
	share := func(s string) *Call { return callOf("smb", &smbapi.RemoveSmbGlobalMappingRequest{RemotePath: s}) }
	volume := func(s string) *Call { return callOf("volume", &volapi.FormatVolumeRequest{VolumeId: s}) }
	portal := func(address string, port uint32) *Call {
		return callOf("iscsi", &iscsiapi.AddTargetPortalRequest{TargetPortal: &iscsiapi.TargetPortal{TargetAddress: address, TargetPort: port}})
	}
	tests := []struct {
		name  string
		want  string
		calls []*Call
	}{
		{"a share, whatever lies on it", `\\server\share`, []*Call{share(`\\server\share`), share(`//SERVER/Share`), share(`\\Server\share\a\b`), share(`\\Server/SHARE\`), share(`\\server\\share`)}},
		{"what is no share", `\\server`, []*Call{share(`\\server`)}},
		{"what is no share at all", `C:\a\B`, []*Call{share(`C:\a\B`)}},
		{"an empty server", `\\\Share`, []*Call{share(`\\\Share`)}},
		{"a volume", `\\?\Volume{` + strings.ToLower(guid) + `}\`, []*Call{volume(`\\?\Volume{` + guid + `}\`), volume(strings.ToUpper(`\\?\Volume{` + guid + `}\`))}},
		{"what is no volume", `Volume{` + guid + `}`, []*Call{volume(`Volume{` + guid + `}`)}},
		{"a portal", "192.0.2.1:3260", []*Call{portal("192.0.2.1", 0), portal("192.0.2.1", 3260)}},
		{"a portal with a long address", "[2001:db8::1]:1", []*Call{portal("2001:db8::1", 1), portal("2001:0DB8:0:0::1", 1)}},
		{"a portal with a name", "a.example:65536", []*Call{portal("A.example", 65536), portal("a.EXAMPLE", 65536)}},
		{"a service", "msiscsi", []*Call{callOf("system", protoadapt.MessageV2Of(&sysapi.StartServiceRequest{Name: "MSiSCSI"}))}},
	}
	for _, tt := range tests {
		for _, call := range tt.calls {
			if targets := Targets(call); len(targets) != 1 || targets[0].Value != tt.want {
				t.Errorf("%s: targets = %q, want %q", tt.name, targets, tt.want)
			}
		}
	}
}

func TestLongTextsAndListsAreCutAndSaySo(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	call := callOf("filesystem", &fsapi.MkdirRequest{Path: "x" + long})
	params, _ := Params(call)
	if len(params) > 2*maxText || !strings.HasSuffix(string(params), `[198978 bytes cut]"}`) || !validJSON(params) {
		t.Errorf("params have %d bytes and end in %s", len(params), params[max(0, len(params)-40):])
	}
	targets := Targets(call)
	if len(targets) != 1 || len(targets[0].Value) > maxText+32 || !utf8.ValidString(targets[0].Value) {
		t.Errorf("targets = %v", targets)
	}

	call = callOf("volume", &volapi.ListVolumesOnDiskResponse{VolumeIds: make([]string, 5000)})
	params, _ = Params(call)
	if !strings.HasSuffix(string(params), `,"[4936 entries cut]"]}`) || !validJSON(params) {
		t.Errorf("params = %s", params)
	}
}

func TestClipKeepsWhatFits(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "abcd": "abcd", "abcde": "abcd[1 bytes cut]", "abcé": "abc[2 bytes cut]",
		"\x80\x80\x80\x80\x80\x80": "[6 bytes cut]",
	} {
		if got := clip(in, 4); got != want {
			t.Errorf("clip(%q) = %q, want %q", in, got, want)
		}
	}
}
