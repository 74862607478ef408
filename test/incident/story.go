package main

import (
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
)

// The share of the story, and the two secrets of it: the right password, and the one that somebody guesses.
const (
	share         = `\\files.example\reports`
	shareUser     = `EXAMPLE\writer`
	sharePassword = "Tr0ub4dor-of-the-files" // #nosec G101 -- of an invented share
	guessed       = "hunter2-as-everywhere"
)

// Places on the invented node.
const (
	ordersMount  = `C:\var\lib\kubelet\pods\0b7c5b0e-6c1e-4f0a-8d0a-3f1d0f8a1111\volumes\kubernetes.io~csi\pv-orders\mount`
	cartMount    = `C:\var\lib\kubelet\pods\7a2f9d44-1b0d-4c43-9d5e-6e5c7b9a2222\volumes\kubernetes.io~csi\pv-cart\mount`
	shareDir     = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\pv-reports`
	shareLink    = shareDir + `\globalmount`
	reportsDir   = `C:\var\lib\kubelet\plugins\reports`
	kubeletPKI   = `C:\var\lib\kubelet\pki`
	rawDisk      = fakehost.RawDisk
	ordersVolume = fakehost.FormattedVolume
	cartVolume   = fakehost.UnformattedVolume
)

// act is one run of the node's guard.
type act struct {
	begins string
	scenes []scene
}

// acts are the runs in the words of the command line.
var acts = map[string]act{"morning": morning, "attack": attack, "after": after}

// morning is what the node does every day. Copies of its log from then are what a log is rolled back to.
var morning = act{"08:00", []scene{
	{at: "08:02", who: diskDriver, pipe: "disk-v1", calls: []call{
		{"ListDiskLocations", nil, codes.OK},
	}},
	{at: "08:02:10", who: diskDriver, pipe: "volume-v1", calls: []call{
		{"ListVolumesOnDisk", object{"diskNumber": 1}, codes.OK},
		{"IsVolumeFormatted", object{"volumeId": ordersVolume}, codes.OK},
	}},
	{at: "08:02:20", who: diskDriver, pipe: "filesystem-v1", calls: []call{
		{"Mkdir", object{"path": ordersMount}, codes.OK},
	}},
	{at: "08:02:30", who: diskDriver, pipe: "volume-v1", calls: []call{
		{"MountVolume", object{"volumeId": ordersVolume, "targetPath": ordersMount}, codes.OK},
	}},
	{at: "08:15", who: diskDriver, pipe: "volume-v1", calls: []call{
		{"ListVolumesOnDisk", object{"diskNumber": 2}, codes.OK},
		{"IsVolumeFormatted", object{"volumeId": cartVolume}, codes.OK},
		{"FormatVolume", object{"volumeId": cartVolume}, codes.OK},
	}},
	{at: "08:15:10", who: diskDriver, pipe: "filesystem-v1", calls: []call{
		{"Mkdir", object{"path": cartMount}, codes.OK},
	}},
	{at: "08:15:20", who: diskDriver, pipe: "volume-v1", calls: []call{
		{"MountVolume", object{"volumeId": cartVolume, "targetPath": cartMount}, codes.OK},
	}},
	{at: "08:30:50", who: fileDriver, pipe: "filesystem-v1", calls: []call{
		{"Mkdir", object{"path": shareDir}, codes.OK},
	}},
	{at: "08:31", who: fileDriver, pipe: "smb-v1", calls: []call{
		{"NewSmbGlobalMapping", object{"remotePath": share, "localPath": shareLink, "username": shareUser, "password": sharePassword}, codes.OK},
	}},
}}

// attack is what a pod does that was broken into. The node is killed at its end, with an operation of a driver under way.
var attack = act{"13:30", append([]scene{
	{at: "13:30:30", who: diskDriver, pipe: "volume-v1", calls: []call{
		{"GetVolumeStats", object{"volumeId": ordersVolume}, codes.OK},
	}},
	{at: "13:32", who: diskCheck, pipe: "disk-v1", calls: []call{
		{"GetDiskStats", object{"diskNumber": 1}, codes.OK},
	}},
	{at: "13:37", who: reportRunner, pipe: "filesystem-v1", calls: []call{
		{"PathExists", object{"path": reportsDir}, codes.OK},
		{"Mkdir", object{"path": reportsDir + `\2026-03-02`}, codes.OK},
	}},
	{at: "13:41", who: reportRunner, pipe: "filesystem-v1", calls: []call{
		{"PathExists", object{"path": kubeletPKI + `\kubelet-client-current.pem`}, codes.PermissionDenied},
		{"PathExists", object{"path": `C:\Windows\System32\config\SAM`}, codes.PermissionDenied},
		{"Mkdir", object{"path": reportsDir + `\..\..\pods\x`}, codes.PermissionDenied},
		{"FormatEverything", nil, codes.Unimplemented},
	}},
	{at: "13:41:20", who: reportRunner, pipe: "volume-v1"},
	{at: "13:41:30", who: reportRunner, pipe: "volume-v1", calls: []call{
		{"ListVolumesOnDisk", object{"diskNumber": 1}, codes.PermissionDenied},
		{"FormatVolume", object{"volumeId": ordersVolume}, codes.PermissionDenied},
	}},
	{at: "13:42", who: reportRunner, pipe: "system-v1alpha1", calls: []call{
		{"GetBIOSSerialNumber", nil, codes.OK},
		{"StopService", object{"name": "LanmanWorkstation", "force": true}, codes.PermissionDenied},
	}},
	{at: "13:43", who: reportRunner, pipe: "disk-v1", calls: []call{
		{"PartitionDisk", object{"diskNumber": rawDisk}, codes.PermissionDenied},
	}},
	{at: "13:43:20", who: reportRunner, pipe: "smb-v1", calls: []call{
		{"NewSmbGlobalMapping", object{"remotePath": share, "username": shareUser, "password": guessed}, codes.PermissionDenied},
	}},
	{at: "13:43:40", who: reportRunner, pipe: "filesystem-v1alpha1", calls: []call{
		{"LinkPath", object{"sourcePath": kubeletPKI, "targetPath": reportsDir + `\pki`}, codes.PermissionDenied},
	}},
	{at: "13:44", who: reportRunner, pipe: "filesystem-v1", calls: probes(12)},
	{at: "13:44:30", who: reportRunner, pipe: "volume-v1beta1", calls: []call{
		{"ListVolumesOnDisk", object{"diskId": "1"}, codes.OK},
	}},
}, scene{at: "13:46", who: diskDriver, pipe: "volume-v1", calls: []call{
	{"ResizeVolume", object{"volumeId": ordersVolume, "sizeBytes": "16106127360"}, codes.OK},
}})}

// after is the next run: the operation that was under way is closed, and somebody changes the access list twice.
var after = act{"14:10", []scene{
	{at: "14:11:50", who: fileDriver, pipe: "filesystem-v1", calls: []call{
		{"Mkdir", object{"path": shareDir}, codes.OK},
	}},
	{at: "14:12", who: fileDriver, pipe: "smb-v1", token: true, calls: []call{
		{"NewSmbGlobalMapping", object{"remotePath": share, "localPath": shareLink, "username": shareUser, "password": sharePassword}, codes.OK},
	}},
	{at: "14:14", away: true, who: fileDriver, pipe: "smb-v1", token: true, calls: []call{
		{"RemoveSmbGlobalMapping", object{"remotePath": share}, codes.OK},
	}},
	{at: "14:20", who: reportRunner, pipe: "filesystem-v1", calls: []call{stealPKI(codes.PermissionDenied)}},
	{at: "14:25", list: mistakeList, who: reportRunner, pipe: "filesystem-v1", calls: []call{
		{"Mkdir", object{"path": reportsDir}, codes.OK},
		stealPKI(codes.OK),
	}},
	{at: "14:27", list: usualList, who: reportRunner, pipe: "filesystem-v1", calls: []call{stealPKI(codes.PermissionDenied)}},
	{at: "14:30", who: diskDriver, pipe: "volume-v1", calls: []call{
		{"GetVolumeStats", object{"volumeId": ordersVolume}, codes.OK},
	}},
}}

// stealPKI makes a link by which the pod would see the kubelet's keys.
func stealPKI(want codes.Code) call {
	return call{"CreateSymlink", object{"sourcePath": kubeletPKI, "targetPath": reportsDir + `\pki`}, want}
}

// probes are a burst of calls that are all refused.
func probes(count int) (list []call) {
	for i := range count {
		list = append(list, call{"PathExists", object{"path": fmt.Sprintf(`C:\var\lib\kubelet\pods\%02d`, i)}, codes.PermissionDenied})
	}
	return list
}
