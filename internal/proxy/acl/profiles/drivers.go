package profiles

// driver is what a driver calls, in the words of the newest API versions, and as whom its own manifests run it.
type driver struct {
	name, namespace, account, container string
	uses                                []set
}

// set are operations of one group.
type set struct {
	group      string
	operations []string
}

var (
	// links is how drivers look at, make and remove directories and the links that stand for mounts.
	links = set{"filesystem", []string{"PathExists", "Mkdir", "Rmdir", "RmdirContents", "CreateSymlink", "IsSymlink"}}
	// volumes is how block drivers format, mount and measure a volume.
	volumes = set{"volume", []string{
		"ListVolumesOnDisk", "IsVolumeFormatted", "FormatVolume", "MountVolume", "UnmountVolume", "WriteVolumeCache", "ResizeVolume",
		"GetVolumeStats", "GetVolumeIDFromTargetPath", "GetClosestVolumeIDFromTargetPath", "GetDiskNumberFromVolumeID",
	}}
	// measures is how file drivers ask for the space of a volume.
	measures = set{"volume", []string{"GetVolumeStats", "GetVolumeIDFromTargetPath", "GetClosestVolumeIDFromTargetPath"}}
	// byLocation and byID are how a disk is found; online is for drivers that take it offline when they are done.
	byLocation = set{"disk", []string{"ListDiskLocations", "Rescan", "PartitionDisk", "GetDiskStats"}}
	byID       = set{"disk", []string{"ListDiskIDs", "Rescan", "PartitionDisk", "GetDiskStats"}}
	online     = set{"disk", []string{"SetDiskState", "GetDiskState"}}
	shares     = set{"smb", []string{"NewSmbGlobalMapping", "RemoveSmbGlobalMapping"}}
	serial     = set{"system", []string{"GetBIOSSerialNumber"}}
)

// drivers are those whose Windows DaemonSets mount CSI Proxy pipes, from their manifests and the calls of their mounters.
var drivers = []driver{
	{"aws-ebs", "kube-system", "ebs-csi-node-sa", "ebs-plugin", []set{links, volumes, byLocation, byID, online}},
	{"azuredisk", "kube-system", "csi-azuredisk-node-sa", "azuredisk", []set{links, volumes, byLocation, byID, online}},
	{"azurefile", "kube-system", "csi-azurefile-node-sa", "azurefile", []set{links, shares}},
	{"gce-pd", "gce-pd-csi-driver", "csi-gce-pd-node-sa-win", "gce-pd-driver", []set{links, volumes, byID, online}},
	{"smb", "kube-system", "csi-smb-node-sa", "smb", []set{links, shares}},
	{"trident", "trident", "trident-node-windows", "trident-main", []set{links, measures, shares}},
	{"vsphere", "vmware-system-csi", "vsphere-csi-node", "vsphere-csi-node", []set{links, volumes, byID, online, serial}},
}
