package rules

import "slices"

// methods are the operations of the node API by their newest names, group by group.
var methods = []string{
	"ListDiskLocations", "PartitionDisk", "Rescan", "GetDiskNumberByName", "ListDiskIDs", "GetDiskStats", "SetDiskState", "GetDiskState",
	"PathExists", "Mkdir", "Rmdir", "RmdirContents", "CreateSymlink", "IsSymlink",
	"AddTargetPortal", "DiscoverTargetPortal", "RemoveTargetPortal", "ListTargetPortals", "ConnectTarget", "DisconnectTarget", "GetTargetDisks", "SetMutualChapSecret",
	"NewSmbGlobalMapping", "RemoveSmbGlobalMapping",
	"GetBIOSSerialNumber", "StartService", "StopService", "GetService",
	"ListVolumesOnDisk", "MountVolume", "UnmountVolume", "IsVolumeFormatted", "FormatVolume", "ResizeVolume", "GetVolumeStats", "GetDiskNumberFromVolumeID", "GetVolumeIDFromTargetPath", "GetClosestVolumeIDFromTargetPath", "WriteVolumeCache",
}

// Methods returns the operations of the node API by their newest names: what a policy can name. A proxy that is older has fewer.
func Methods() []string { return slices.Clone(methods) }
