package pipepath

import (
	"slices"
	"strings"
)

// diskWords are parts of the names of devices behind which are disks, volumes or the memory of the machine:
//
//	\\.\PhysicalDrive0, \\?\Volume{…}, \\.\HarddiskVolume3, \\.\BootPartition, \Device\Harddisk0\DR0,
//	\\?\scsi#disk&ven_…, \\?\storage#volume#…, \Device\RaidPort0, \Device\BootDevice, \Device\PhysicalMemory
//
// Others will come, under names with one of these words in all likelihood.
var diskWords = [...]string{"disk", "drive", "volume", "partition", "boot", "storage", "scsi", "nvme", "raid", "shadow", "memory"}

// device judges the canonical name of a device that is neither pipe, share nor drive with a path behind it.
func (p *Powers) device(canonical string) Reach {
	if isDisk(canonical) {
		return above(PowerDisk)
	}
	rest, isDOS := strings.CutPrefix(canonical, `\\.\`)
	if !isDOS {
		rest = strings.TrimPrefix(canonical, `\`) // the NT name, which may have been written \\.\device
	}
	return p.onSystemDrive(rest)
}

func isDisk(device string) bool {
	if slices.ContainsFunc(diskWords[:], func(word string) bool { return strings.Contains(device, word) }) {
		return true
	}
	name := strings.TrimPrefix(device, `\\.\`)
	return len(name) > 1 && name[1] == ':' // c:x, c::$data: no drive by the rules of names, and nothing else either
}

// share judges a canonical UNC path. The share is looked for in the host's place too: in \\?\UNC\.\C$\x and behind a
// redirector's options, the host is a segment that Canonical leaves out.
func (p *Powers) share(canonical string) Reach {
	rest := strings.TrimPrefix(canonical, `\\`)
	host, below, _ := strings.Cut(rest, `\`)
	share, _, _ := strings.Cut(below, `\`)
	if administrative(host) || administrative(share) {
		return above(PowerShare)
	}
	return p.onSystemDrive(rest)
}

// onSystemDrive takes what stands behind \\ or \\.\ for a path of drive C: the kubelet puts "c:" before every path that begins
// with a slash and has no colon, so that //windows/system32 is no share (IsWindowsLocalPath in k8s.io/kubernetes/pkg/volume/util).
// This sees a drive behind a scheme as well: uvm://C:\x.
func (p *Powers) onSystemDrive(rest string) Reach {
	return p.file(Name{Kind: KindPath, Canonical: `\` + rest})
}

// administrative reports whether a folded segment is a share that Windows makes for administrators: ADMIN$, which is
// the directory of Windows, and C$ for each drive.
func administrative(seg string) bool {
	seg, _, _ = strings.Cut(seg, ":") // a stream
	if seg == "admin$" {
		return true
	}
	return len(seg) == 2 && 'a' <= seg[0] && seg[0] <= 'z' && seg[1] == '$'
}
