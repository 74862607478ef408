package apiserver

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	sysapi "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volapi "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/google/go-cmp/cmp"
)

func validJSON(b []byte) bool { return json.Valid(b) && utf8.Valid(b) }

func callOf(group string, request proto.Message) *Call {
	return &Call{Operation: &Operation{Group: group}, Request: request}
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
			`{"disk_number":4294967295,"partition_number":0}`, nil, nil},
		{"a service", callOf("system", protoadapt.MessageV2Of(&sysapi.StopServiceRequest{Name: "x", Force: true})),
			`{"name":"x","force":true}`, nil, []Target{{"service", "x"}}},
		{"a line break is written as JSON writes it", callOf("filesystem", &fsapi.MkdirRequest{Path: "a\nb\u2028\"<"}),
			`{"path":"a\nb\u2028\"\u003c"}`, nil, []Target{{"path", "a\nb\u2028\"<"}}},
		{"text that is not UTF-8", callOf("filesystem", &fsapi.MkdirRequest{Path: "a\xff"}), `{"path":"a\ufffd"}`, nil, []Target{{"path", "a\xff"}}},
		{"enums by name, a list", callOf("system", protoadapt.MessageV2Of(&sysapi.GetServiceResponse{DisplayName: "d", StartType: sysapi.StartType_MANUAL, Status: 99})),
			`{"display_name":"d","start_type":"MANUAL","status":99}`, nil, nil},
		{"lists", callOf("volume", &volapi.ListVolumesOnDiskResponse{VolumeIds: []string{"a", "b"}}), `{"volume_ids":["a","b"]}`, nil, []Target{{"volume", "a"}, {"volume", "b"}}},
		{"a text that nobody has classified is withheld", callOf("smb", &fsapi.CreateSymlinkRequest{SourcePath: "s3cret", TargetPath: "t"}),
			`{"source_path":"[redacted]","target_path":"[redacted]"}`, []string{"source_path", "target_path"}, nil},
		{"so is a list of them", callOf("smb", &volapi.ListVolumesOnDiskResponse{VolumeIds: []string{"s3cret"}}),
			`{"volume_ids":"[redacted]"}`, []string{"volume_ids"}, nil},
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
