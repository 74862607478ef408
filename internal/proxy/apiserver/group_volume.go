package apiserver

import "google.golang.org/protobuf/reflect/protoreflect"

var volumeTable = groupTable{
	groupRow: groupRow{"volume", "Volume", []string{"v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1", "v2alpha1"}},
	operations: []operationRow{
		{"volume", "ListVolumesOnDisk", true},
		{"volume", "MountVolume", false},
		{"volume", "UnmountVolume", false},
		{"volume", "IsVolumeFormatted", true},
		{"volume", "FormatVolume", false},
		{"volume", "ResizeVolume", false},
		{"volume", "GetVolumeStats", true},
		{"volume", "GetDiskNumberFromVolumeID", true},
		{"volume", "GetVolumeIDFromTargetPath", true},
		{"volume", "GetClosestVolumeIDFromTargetPath", true},
		{"volume", "WriteVolumeCache", false},
	},
	methods: []methodRow{
		{group: "volume", method: "DismountVolume", operation: "UnmountVolume", errorPrefix: "Forward to UnmountVolume failed, err="},
		{group: "volume", method: "VolumeStats", operation: "GetVolumeStats", errorPrefix: "Forward to GetVolumeStats failed, err="},
		{group: "volume", method: "GetVolumeDiskNumber", operation: "GetDiskNumberFromVolumeID", errorPrefix: "Forward to GetDiskNumberFromVolumeID failed, err="},
		{group: "volume", method: "GetVolumeIDFromMount", operation: "GetVolumeIDFromTargetPath", errorPrefix: "Forward to GetVolumeIDFromTargetPath failed, err="},
	},
	fields: []fieldRow{
		{group: "volume", method: "ListVolumesOnDisk", part: inRequest, served: "disk_id", hub: "disk_number", as: asDecimal},
		{group: "volume", method: "ListVolumesOnDisk", part: inRequest, hub: "partition_number",
			why: "versions without it list all partitions, which is what 0 means"},
		{group: "volume", method: "MountVolume", part: inRequest, served: "path", hub: "target_path"},
		{group: "volume", method: "DismountVolume", part: inRequest, served: "path", hub: "target_path"},
		{group: "volume", method: "ResizeVolume", part: inRequest, served: "size", hub: "size_bytes"},
		{group: "volume", method: "VolumeStats", part: inResponse, served: "volumeSize", hub: "total_bytes"},
		{group: "volume", method: "VolumeStats", part: inResponse, served: "volumeUsedSize", hub: "used_bytes"},
		{group: "volume", method: "GetVolumeDiskNumber", part: inResponse, served: "diskNumber", hub: "disk_number", as: asWider},
		{group: "volume", method: "GetVolumeIDFromMount", part: inRequest, served: "mount", hub: "target_path"},
	},
	classes: map[protoreflect.Name]class{
		"disk_id":     classPublic,
		"mount":       classPath,
		"path":        classPath,
		"target_path": classPath,
		"volume_id":   classID,
		"volume_ids":  classID,
	},
	kinds: map[protoreflect.Name]string{
		"disk_number": kindDisk,
		"volume_id":   kindVolume,
		"volume_ids":  kindVolume,
	},
}
