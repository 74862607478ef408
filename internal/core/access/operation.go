package access

import (
	"fmt"
	"slices"
)

// takesPaths is how many path arguments an operation has, by its newest name. What is not in it has none.
var takesPaths = map[string]int{
	"PathExists": 1, "Mkdir": 1, "Rmdir": 1, "RmdirContents": 1, "IsSymlink": 1,
	"CreateSymlink": 2, // both ends
	"MountVolume":   1, "UnmountVolume": 1, "GetVolumeIDFromTargetPath": 1, "GetClosestVolumeIDFromTargetPath": 1,
	"NewSmbGlobalMapping": 1, // the local path, which a caller may leave out
}

// replacesPath is which path argument an operation removes, empties, mounts over or makes a link, counted from 1. What is not
// in it only uses its paths.
var replacesPath = map[string]int{
	"Rmdir": 1, "RmdirContents": 1,
	"CreateSymlink": 2, // the target, which becomes the link
	"MountVolume":   1, "UnmountVolume": 1,
	"NewSmbGlobalMapping": 1,
}

// takesShares and takesServices are the operations that name SMB shares and services, by their newest names.
var (
	takesShares   = []string{"NewSmbGlobalMapping", "RemoveSmbGlobalMapping"}
	takesServices = []string{"GetService", "StartService", "StopService"}
)

// TakesPaths returns how many paths of the host an operation of the node API names. Where paths are confined, only
// operations that name one are permitted.
func TakesPaths(operation string) int { return takesPaths[operation] }

// ReplacesPath returns which of an operation's paths it removes, empties, mounts over or makes a link, counted from 1; 0
// is none. Where paths are confined, that path must lie below one of the directories.
func ReplacesPath(operation string) int { return replacesPath[operation] }

// TakesShares says whether an operation of the node API names an SMB share.
func TakesShares(operation string) bool { return slices.Contains(takesShares, operation) }

// TakesServices says whether an operation of the node API names a service of the host.
func TakesServices(operation string) bool { return slices.Contains(takesServices, operation) }

// Permits are dangerous steps that no operation includes.
const (
	Reformat   = "Reformat"   // to format a volume that has a file system
	SystemDisk = "SystemDisk" // to change a disk or volume that the node runs from
	// NodeAccount maps a share without a user name, so that the node logs on to the server with its own account. It is permitted
	// together with certain shares only.
	NodeAccount = "NodeAccount"
)

// uses are the operations that a permit changes something about.
var uses = map[string][]string{
	Reformat: {"FormatVolume"},
	SystemDisk: {
		"PartitionDisk", "SetDiskState", "MountVolume", "FormatVolume", "ResizeVolume",
	},
	NodeAccount: {"NewSmbGlobalMapping"},
}

// PermitUses returns the operations that a permit changes something about; none if there is no such permit. The caller does not change them.
func PermitUses(permit string) []string { return uses[permit] }

// CheckPermit refuses what is no permit, and NodeAccount without shares.
func CheckPermit(name string, shares []string) error {
	switch {
	case uses[name] == nil:
		return fmt.Errorf("permit %q: want %s, %s or %s", name, Reformat, SystemDisk, NodeAccount)
	case name == NodeAccount && len(shares) == 0:
		return fmt.Errorf("%s needs shares: without them the node would log on to any server with its own account", name)
	}
	return nil
}
