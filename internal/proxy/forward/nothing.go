package forward

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// nothing is a host on which every operation succeeds without doing anything. A handler over it refuses the requests that it
// refuses before it calls its host.
type nothing struct{}

var (
	_ handler.Disk       = nothing{}
	_ handler.Filesystem = nothing{}
	_ handler.ISCSI      = nothing{}
	_ handler.SMB        = nothing{}
	_ handler.System     = nothing{}
	_ handler.Volume     = nothing{}
)

func (nothing) PathExists(context.Context, safepath.Path) (bool, error)           { return false, nil }
func (nothing) Mkdir(context.Context, safepath.Path) error                        { return nil }
func (nothing) Rmdir(context.Context, safepath.Path, bool) error                  { return nil }
func (nothing) RmdirContents(context.Context, safepath.Path) error                { return nil }
func (nothing) CreateSymlink(context.Context, safepath.Path, safepath.Path) error { return nil }
func (nothing) IsSymlink(context.Context, safepath.Path) (bool, error)            { return false, nil }

func (nothing) ListDiskLocations(context.Context) (map[uint32]handler.DiskLocation, error) {
	return nil, nil
}
func (nothing) ListDiskIDs(context.Context) (map[uint32]handler.DiskIDs, error)    { return nil, nil }
func (nothing) PartitionDisk(context.Context, uint32, handler.Permits) error       { return nil }
func (nothing) Rescan(context.Context) error                                       { return nil }
func (nothing) DiskSize(context.Context, uint32) (int64, error)                    { return 0, nil }
func (nothing) IsDiskOnline(context.Context, uint32) (bool, error)                 { return false, nil }
func (nothing) SetDiskOnline(context.Context, uint32, bool, handler.Permits) error { return nil }

func (nothing) ListVolumesOnDisk(context.Context, uint32, uint32) ([]handler.VolumeID, error) {
	return nil, nil
}
func (nothing) MountVolume(context.Context, handler.VolumeID, safepath.Path, handler.Permits) error {
	return nil
}
func (nothing) UnmountVolume(context.Context, handler.VolumeID, safepath.Path) error  { return nil }
func (nothing) IsVolumeFormatted(context.Context, handler.VolumeID) (bool, error)     { return false, nil }
func (nothing) FormatVolume(context.Context, handler.VolumeID, handler.Permits) error { return nil }
func (nothing) ResizeVolume(context.Context, handler.VolumeID, int64, handler.Permits) error {
	return nil
}
func (nothing) GetVolumeStats(context.Context, handler.VolumeID) (handler.VolumeStats, error) {
	return handler.VolumeStats{}, nil
}
func (nothing) DiskNumber(context.Context, handler.VolumeID) (uint32, error) { return 0, nil }
func (nothing) WriteVolumeCache(context.Context, handler.VolumeID) error     { return nil }

func (nothing) VolumeIDFromTargetPath(context.Context, safepath.Path) (handler.VolumeID, error) {
	return "", nil
}

func (nothing) ClosestVolumeIDFromTargetPath(context.Context, safepath.Path) (handler.VolumeID, error) {
	return "", nil
}

func (nothing) NewSMBGlobalMapping(context.Context, handler.SMBMapping) error { return nil }
func (nothing) RemoveSMBGlobalMapping(context.Context, handler.Share) error   { return nil }

func (nothing) AddTargetPortal(context.Context, handler.TargetPortal) error { return nil }
func (nothing) DiscoverTargetPortal(context.Context, handler.TargetPortal) ([]handler.IQN, error) {
	return nil, nil
}
func (nothing) ListTargetPortals(context.Context) ([]handler.TargetPortal, error) { return nil, nil }
func (nothing) RemoveTargetPortal(context.Context, handler.TargetPortal) error    { return nil }
func (nothing) ConnectTarget(context.Context, handler.TargetPortal, handler.IQN, handler.Login) error {
	return nil
}
func (nothing) DisconnectTarget(context.Context, handler.TargetPortal, handler.IQN) error { return nil }
func (nothing) TargetDisks(context.Context, handler.TargetPortal, handler.IQN) ([]uint32, error) {
	return nil, nil
}
func (nothing) SetMutualCHAPSecret(context.Context, handler.Secret) error { return nil }

func (nothing) BIOSSerialNumber(context.Context) (string, error)        { return "", nil }
func (nothing) StartService(context.Context, handler.ServiceName) error { return nil }

// StopService refuses force: the upstream would stop dependents that are not known here, so no rule can have named them.
func (nothing) StopService(_ context.Context, name handler.ServiceName, force bool, _ handler.Permits) error {
	if force {
		return fmt.Errorf("stop service %s: a forced stop is not passed on, because the services that depend on it are not known here: %w", name, fs.ErrPermission)
	}
	return nil
}

func (nothing) Service(context.Context, handler.ServiceName) (handler.ServiceInfo, error) {
	return handler.ServiceInfo{}, nil
}
