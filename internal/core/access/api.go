package access

import "slices"

// Group is one API of CSI Proxy: each of its versions has a pipe.
type Group struct {
	Name string
	// Versions from the oldest to the newest.
	Versions []string
	// Methods are the operations by their newest names.
	Methods []string
}

// PipePrefix is what the names of CSI Proxy's pipes begin with.
const PipePrefix = "csi-proxy-"

// Pipes returns the group's pipes.
func (g Group) Pipes() []Pipe {
	out := make([]Pipe, len(g.Versions))
	for i, v := range g.Versions {
		out[i] = Pipe{g.Name, v}
	}
	return out
}

// MustBeSpelled says whether a pattern of pipes covers a group only if it spells the group out: system starts and stops any service of the node,
// iscsi reaches other machines.
func MustBeSpelled(group string) bool { return group == "system" || group == "iscsi" }

var groups = []Group{
	{"disk", []string{"v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1"}, []string{
		"ListDiskLocations", "PartitionDisk", "Rescan", "GetDiskNumberByName", "ListDiskIDs", "GetDiskStats", "SetDiskState", "GetDiskState",
	}},
	{"filesystem", []string{"v1alpha1", "v1beta1", "v1beta2", "v1", "v2alpha1"}, []string{
		"PathExists", "Mkdir", "Rmdir", "RmdirContents", "CreateSymlink", "IsSymlink",
	}},
	{"iscsi", []string{"v1alpha1", "v1alpha2"}, []string{
		"AddTargetPortal", "DiscoverTargetPortal", "RemoveTargetPortal", "ListTargetPortals", "ConnectTarget", "DisconnectTarget", "GetTargetDisks", "SetMutualChapSecret",
	}},
	{"smb", []string{"v1alpha1", "v1beta1", "v1beta2", "v1"}, []string{"NewSmbGlobalMapping", "RemoveSmbGlobalMapping"}},
	{"system", []string{"v1alpha1"}, []string{"GetBIOSSerialNumber", "StartService", "StopService", "GetService"}},
	{"volume", []string{"v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1", "v2alpha1"}, []string{
		"ListVolumesOnDisk", "MountVolume", "UnmountVolume", "IsVolumeFormatted", "FormatVolume", "ResizeVolume", "GetVolumeStats", "GetDiskNumberFromVolumeID", "GetVolumeIDFromTargetPath", "GetClosestVolumeIDFromTargetPath", "WriteVolumeCache",
	}},
}

// Groups returns the APIs of CSI Proxy. The caller does not change them.
func Groups() []Group { return slices.Clone(groups) }

// GuardsCSIProxy says whether patterns of pipes, in lower case, guard any pipe of CSI Proxy.
func GuardsCSIProxy(patterns ...string) bool {
	p := Policy{Pipes: patterns}
	return slices.ContainsFunc(groups, func(g Group) bool { return slices.ContainsFunc(g.Pipes(), p.Guards) })
}

// Methods returns the operations of the node API by their newest names: what a policy can name. A proxy that is older has fewer.
func Methods() []string {
	var out []string
	for _, g := range groups {
		out = append(out, g.Methods...)
	}
	return out
}

// groupOf has the group of each operation.
var groupOf = func() map[string]string {
	of := map[string]string{}
	for _, g := range groups {
		for _, m := range g.Methods {
			of[m] = g.Name
		}
	}
	return of
}()
