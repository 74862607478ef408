package apiserver

import (
	// The published packages register the messages and services that Load looks up by name.
	_ "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta2"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta2"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta3"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
)

// groupRow is an API group: the service that its versions declare, and those versions, the hub last.
type groupRow struct {
	name     string
	service  string
	versions []string
}

// operationRow is a method of a hub.
type operationRow struct {
	group, name string
	readOnly    bool
}

// tables is everything that is said by hand about the served API. The rest comes from the descriptors.
type tables struct {
	groups     []groupRow
	operations []operationRow
	methods    []methodRow
	fields     []fieldRow
	classes    map[classKey]class
}

// published returns the tables of the API that is served.
func published() tables {
	return tables{
		groups: []groupRow{
			{"filesystem", "Filesystem", []string{"v1alpha1", "v1beta1", "v1beta2", "v1", "v2alpha1"}},
			{"volume", "Volume", []string{"v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1", "v2alpha1"}},
			{"system", "System", []string{"v1alpha1"}},
		},
		operations: []operationRow{
			{"filesystem", "PathExists", true},
			{"filesystem", "Mkdir", false},
			{"filesystem", "Rmdir", false},
			{"filesystem", "RmdirContents", false},
			{"filesystem", "CreateSymlink", false},
			{"filesystem", "IsSymlink", true},
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
			{"system", "GetBIOSSerialNumber", true},
			{"system", "StartService", false},
			{"system", "StopService", false},
			{"system", "GetService", true},
		},
		methods: publishedMethods,
		fields:  publishedFields,
		classes: publishedClasses,
	}
}
