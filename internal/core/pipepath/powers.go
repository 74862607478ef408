package pipepath

import (
	"errors"
	"strings"
)

// Power says in what way a mount gives as much as a guarded pipe does: a pod that has it can make the node do anything.
type Power string

// Powers of mounts. PowerNone is that of an ordinary mount.
const (
	PowerNone      Power = ""
	PowerPipe      Power = "pipe"      // a pipe that commands the node: a container runtime's, an agent's
	PowerDirectory Power = "directory" // a directory from which the node runs programs or reads credentials
	PowerDisk      Power = "disk"      // a disk or volume below its file system
	PowerShare     Power = "share"     // an administrative share, behind which is a whole disk of some host
)

// Place says how a path stands to a listed directory.
type Place string

// Places of paths. PlaceNone is that of a path which has nothing to do with any listed directory.
const (
	PlaceNone    Place = ""
	PlacePath    Place = "path"    // the directory itself
	PlaceBeneath Place = "beneath" // something in it
	PlaceAbove   Place = "above"   // a directory, disk or share that it is in, or a path that may lead anywhere
)

// Reach is what a mount gets hold of.
type Reach struct {
	Power Power
	// Place is how the path stands to Directory, as that is listed; both are empty if no directory is concerned. Where Directory alone is empty, every one is.
	Place     Place
	Directory string
}

// Powers knows what else is as powerful as a guarded pipe. It does not change after [NewPowers], so that any number of
// goroutines may use it.
type Powers struct {
	pipes       []pattern
	directories []Directory
	// everyRoot says that the root of a drive is above each of its directories, and not only something if it is listed.
	everyRoot bool
}

// DefaultPowerPipes are pipes through which a container can be started with any mount, and which no workload needs:
// those of BuildKit, of containerd (containerd-containerd.ttrpc too) and its shims, of Docker and cri-dockerd, of the kubelet's former
// dockershim, and of Rancher's wins. Through the others Windows itself manages services, tasks, the registry, secrets and accounts, shares,
// printer drivers, encrypted files and shutdown ([MS-SCMR], [MS-TSCH], [MS-RRP], [MS-LSAD], [MS-SAMR], [MS-SRVS], [MS-RPRN], [MS-EFSR], [MS-RSP]); lsarpc, netlogon, protected_storage and samr are names of lsass, eventlog and svcctl of ntsvcs.
func DefaultPowerPipes() []string {
	return []string{
		"buildkitd*", "containerd-containerd*", "containerd-shim-*", "cri-dockerd*", "docker_engine*", "dockershim*", "rancher_wins*",
		"atsvc", "efsrpc", "eventlog", "initshutdown", "lsarpc", "lsass", "netlogon", "ntsvcs", "protected_storage", "samr", "spoolss", "srvsvc", "svcctl",
		"winreg",
	}
}

// DefaultPowerPaths are the root of the system drive, from which all else can be reached, the directory of Windows, and that
// of the kubelet's credentials and static pods.
func DefaultPowerPaths() []string { return []string{`C:\`, `C:\Windows`, `C:\etc\kubernetes`} }

// DefaultHostPaths are the directories through which a pod gets at what a guarded pipe protects, or at the node, by way of a program that trusts them: the kubelet's
// (the sockets of CSI drivers and of their registration, its keys, the volumes of all pods), those of volume and network plugins, whose programs the kubelet and the
// container runtime start, the one in which tools for Windows nodes keep programs and kubeconfigs, and those of installed programs, of their state (containerd's,
// Pipeguard's, the SSH server's) and of users. Programs of Azure's agent and its extensions run as SYSTEM, and so do scripts that Windows Installer and
// the recovery environment read from their directories; Windows.old has the accounts of a former installation.
func DefaultHostPaths() []string {
	return []string{
		`C:\var\lib\kubelet`, `C:\usr\libexec\kubernetes`, `C:\etc\cni`, `C:\opt\cni`, `C:\k`, `C:\Program Files`, `C:\Program Files (x86)`, `C:\ProgramData`, `C:\Users`,
		`C:\AzureData`, `C:\Config.Msi`, `C:\Packages`, `C:\Recovery`, `C:\Windows.old`, `C:\WindowsAzure`,
	}
}

// NewPowers returns Powers of pipes, written as for [NewGuard], and of directories, absolute with a drive (C:\Windows).
// The error names every one that is neither. Both lists may be empty: disks and shares are powerful all the same.
func NewPowers(pipes, paths []string) (*Powers, error) {
	patterns, faults := parseAll(pipes, parsePattern)
	directories, more := parseAll(paths, ParseDirectory)
	if err := errors.Join(faults, more); err != nil {
		return nil, err
	}
	return &Powers{pipes: patterns, directories: directories}, nil
}

// NewHostPaths returns Powers of guarded host paths alone, written as those of [NewPowers]. Above them are the root of their drive, and disks and shares, behind
// which they may be. Pipes are nothing to it.
func NewHostPaths(paths []string) (*Powers, error) {
	p, err := NewPowers(nil, paths)
	if err != nil {
		return nil, err
	}
	p.everyRoot = true
	return p, nil
}

// JudgeMount says what a mount of hostPath, or of subPath within it, gets hold of. The volume's own reach stands if it has one.
// What names no single thing ([Kind.NeverAllowed]) has the power of the greatest thing that it may name: a Guard refuses it anyway.
//
// A ".." in a subPath is followed, although no kubelet mounts it (ValidatePathNoBacksteps): that costs nothing.
func (p *Powers) JudgeMount(hostPath, subPath string) Reach {
	volume := p.judge(hostPath)
	if volume.Power != PowerNone || subPath == "" {
		return volume
	}
	return p.judge(joinSubPath(hostPath, subPath))
}

func (p *Powers) judge(path string) Reach {
	name := Canonical(path)
	switch name.Kind {
	case KindPath, KindDrive:
		return p.file(name)
	case KindPipe:
		return Reach{Power: p.pipe(name.Pipe)}
	case KindPipeRoot:
		return Reach{Power: PowerPipe}
	case KindUNC:
		return p.share(name.Canonical)
	case KindUNCHost:
		return above(PowerShare)
	case KindDOSDevice, KindNTDevice:
		return p.device(name.Canonical)
	case KindAncestor, KindNTOther, KindMalformed, KindMalformedDotdot:
		return above(PowerDisk)
	}
	return above(PowerDisk) // a kind added later may be one, until someone decides
}

// above is the reach of what holds every directory.
func above(power Power) Reach { return Reach{Power: power, Place: PlaceAbove} }

// ProtectedPrefix is a directory of pipes, in lower case: that alone has the power of what is in it.
const ProtectedPrefix = "protectedprefix"

// pipe looks below \\.\pipe\ProtectedPrefix\<group>\ too: only members of the group may make pipes there, and the shims of
// containerd do (https://github.com/microsoft/hcsshim, addrFmt in cmd/containerd-shim-runhcs-v1).
func (p *Powers) pipe(name string) Power {
	if _, ok := coversAny(p.pipes, name); ok {
		return PowerPipe
	}
	first, rest, _ := strings.Cut(name, `\`)
	if first != ProtectedPrefix {
		return PowerNone
	}
	_, below, _ := strings.Cut(rest, `\`)
	if _, ok := coversAny(p.pipes, below); ok || below == "" {
		return PowerPipe
	}
	return PowerNone
}
