package handler

import (
	"context"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// Hosts are the parts of a host that this process can act on. The operations of a group
// whose part is nil are not offered.
type Hosts struct {
	Disk       Disk
	Filesystem Filesystem
	Volume     Volume
	SMB        SMB
	ISCSI      ISCSI
	System     System
}

// Permits are the dangerous steps that the access list allows this call by name.
type Permits = apiserver.Permits

// Filesystem is the part of a host that holds directories and links.
// Absence is reported as fs.ErrNotExist, a name in the way as fs.ErrExist.
type Filesystem interface {
	// PathExists does not follow the last component.
	PathExists(ctx context.Context, path safepath.Path) (bool, error)
	// Mkdir creates path and its missing parents; an existing directory is success.
	Mkdir(ctx context.Context, path safepath.Path) error
	// Rmdir removes an empty directory, a file or a link; with force, everything beneath it too, links not followed.
	Rmdir(ctx context.Context, path safepath.Path, force bool) error
	// RmdirContents empties a directory. The directory itself must not be a link; links inside are removed, not followed.
	RmdirContents(ctx context.Context, path safepath.Path) error
	// CreateSymlink makes target a link to source. A link that already points there is success.
	CreateSymlink(ctx context.Context, source, target safepath.Path) error
	// IsSymlink says whether path is a link or a mount point whose target exists.
	IsSymlink(ctx context.Context, path safepath.Path) (bool, error)
}

// VolumeStats are the sizes of a volume in bytes.
type VolumeStats struct {
	Total, Used int64
}

// Volume is the part of a host that holds volumes. An unknown id is fs.ErrNotExist. To mount, format or resize
// a volume of a disk that the host itself runs from is refused with fs.ErrPermission unless the call's permits name it.
type Volume interface {
	// ListVolumesOnDisk returns the volumes of one partition, or of all partitions if partition is 0.
	ListVolumesOnDisk(ctx context.Context, disk, partition uint32) ([]VolumeID, error)
	// MountVolume mounts id at an existing empty directory; a target that already shows id is success.
	MountVolume(ctx context.Context, id VolumeID, target safepath.Path, permits Permits) error
	// UnmountVolume flushes id and removes its mount point; a target that is no mount point, or is not there, is
	// success, a target that shows another volume is ErrPrecondition.
	UnmountVolume(ctx context.Context, id VolumeID, target safepath.Path) error
	IsVolumeFormatted(ctx context.Context, id VolumeID) (bool, error)
	// FormatVolume makes an NTFS file system; a formatted volume is refused with fs.ErrExist unless permits.Reformat.
	FormatVolume(ctx context.Context, id VolumeID, permits Permits) error
	// ResizeVolume grows the partition of id to size bytes; 0 means as far as it goes. Less than 100 MiB more than
	// it has is success, and nothing is done; so is less than it has.
	ResizeVolume(ctx context.Context, id VolumeID, size int64, permits Permits) error
	GetVolumeStats(ctx context.Context, id VolumeID) (VolumeStats, error)
	DiskNumber(ctx context.Context, id VolumeID) (uint32, error)
	// VolumeIDFromTargetPath names the volume mounted at exactly path; ErrPrecondition if none is.
	VolumeIDFromTargetPath(ctx context.Context, path safepath.Path) (VolumeID, error)
	// ClosestVolumeIDFromTargetPath names the volume that holds path.
	ClosestVolumeIDFromTargetPath(ctx context.Context, path safepath.Path) (VolumeID, error)
	WriteVolumeCache(ctx context.Context, id VolumeID) error
}

// StartType says when the service manager starts a service.
type StartType int32

// Start types, with the numbers of the system API.
const (
	StartBoot StartType = iota
	StartSystem
	StartAutomatic
	StartManual
	StartDisabled
)

// ServiceStatus is the state of a service.
type ServiceStatus int32

// Service states, with the numbers of the system API.
const (
	ServiceUnknown ServiceStatus = iota
	ServiceStopped
	ServiceStartPending
	ServiceStopPending
	ServiceRunning
	ServiceContinuePending
	ServicePausePending
	ServicePaused
)

// ServiceInfo describes a service of the host.
type ServiceInfo struct {
	DisplayName string
	StartType   StartType
	Status      ServiceStatus
}

// System is the part of a host that has a serial number and services. An unknown service is fs.ErrNotExist.
type System interface {
	BIOSSerialNumber(ctx context.Context) (string, error)
	Service(ctx context.Context, name ServiceName) (ServiceInfo, error)
	// StartService returns when the service runs; a running service is success.
	StartService(ctx context.Context, name ServiceName) error
	// StopService returns when the service has stopped; a stopped service is success. Running dependents are ErrPrecondition
	// without force. With force they are stopped first, if permits names all of them, and else nothing is stopped.
	StopService(ctx context.Context, name ServiceName, force bool, permits Permits) error
}
