package pipepath

import (
	"errors"
	"fmt"
	"strings"
)

// Power says in what way a mount gives as much as a guarded pipe does: whoever has it can make the node do anything.
type Power string

// Powers of mounts. PowerNone is that of an ordinary mount.
const (
	PowerNone      Power = ""
	PowerPipe      Power = "pipe"      // a pipe that commands the node: a container runtime's, an agent's
	PowerDirectory Power = "directory" // a directory from which the node runs programs or reads credentials
	PowerDisk      Power = "disk"      // a disk or volume below its file system
	PowerShare     Power = "share"     // an administrative share, behind which is a whole disk of some host
)

// Powers knows what else is as powerful as a guarded pipe. It does not change after [NewPowers], so that any number of
// goroutines may use it.
type Powers struct {
	pipes       []pattern
	directories []directory
}

// DefaultPowerPipes are pipes through which a container can be started with any mount, and which no workload needs:
// those of containerd (containerd-containerd.ttrpc too) and its shims, of Docker and cri-dockerd, of the kubelet's former
// dockershim, and of Rancher's wins.
func DefaultPowerPipes() []string {
	return []string{
		"containerd-containerd*", "containerd-shim-*", "cri-dockerd*", "docker_engine*", "dockershim*", "rancher_wins*",
	}
}

// DefaultPowerPaths are the root of the system drive, from which all else can be reached, the directory of Windows, and that
// of the kubelet's credentials and static pods.
func DefaultPowerPaths() []string { return []string{`C:\`, `C:\Windows`, `C:\etc\kubernetes`} }

// NewPowers returns Powers of pipes, written as for [NewGuard], and of directories, absolute with a drive (C:\Windows).
// The error names every one that is neither. Both lists may be empty: disks and shares are powerful all the same.
func NewPowers(pipes, paths []string) (*Powers, error) {
	p := &Powers{}
	var faults []error
	for _, s := range pipes {
		parsed, err := parsePattern(s)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		p.pipes = append(p.pipes, parsed)
	}
	for _, s := range paths {
		d, fault := parseDirectory(s)
		if fault != "" {
			faults = append(faults, fmt.Errorf("path %.300q %s", s, fault))
			continue
		}
		p.directories = append(p.directories, d)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return p, nil
}

// JudgeMount says which power a mount of hostPath, or of subPath within it, gives. The volume's own power stands if it has one.
// What names no single thing ([Kind.NeverAllowed]) has the power of the greatest thing that it may name: a Guard refuses it anyway.
//
// A ".." in a subPath is followed, although no kubelet mounts it (ValidatePathNoBacksteps): it costs nobody anything.
func (p *Powers) JudgeMount(hostPath, subPath string) Power {
	volume := p.judge(hostPath)
	if volume != PowerNone || subPath == "" {
		return volume
	}
	return p.judge(joinSubPath(hostPath, subPath))
}

func (p *Powers) judge(path string) Power {
	name := Canonical(path)
	switch name.Kind {
	case KindPath, KindDrive:
		return p.file(name)
	case KindPipe:
		return p.pipe(name.Pipe)
	case KindPipeRoot:
		return PowerPipe
	case KindUNC:
		return p.share(name.Canonical)
	case KindUNCHost:
		return PowerShare
	case KindDOSDevice, KindNTDevice:
		return p.device(name.Canonical)
	case KindAncestor, KindNTOther, KindMalformed, KindMalformedDotdot:
		return PowerDisk
	}
	return PowerDisk // a kind added later may be one, until someone decides
}

// pipe looks below \\.\pipe\ProtectedPrefix\<group>\ too: only members of the group may make pipes there, and the shims of
// containerd do (https://github.com/microsoft/hcsshim, addrFmt in cmd/containerd-shim-runhcs-v1).
func (p *Powers) pipe(name string) Power {
	if p.covers(name) {
		return PowerPipe
	}
	first, rest, _ := strings.Cut(name, `\`)
	if first != "protectedprefix" {
		return PowerNone
	}
	if _, below, _ := strings.Cut(rest, `\`); below == "" || p.covers(below) {
		return PowerPipe
	}
	return PowerNone
}

func (p *Powers) covers(pipe string) bool {
	for _, pattern := range p.pipes {
		if pattern.covers(pipe) {
			return true
		}
	}
	return false
}
