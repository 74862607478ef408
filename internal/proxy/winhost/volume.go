package winhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// volumes are the volumes of the host, as MSFT_Volume shows them, and the places at which they are mounted.
// https://learn.microsoft.com/windows-hardware/drivers/storage/msft-volume
type volumes struct {
	asked
	places
	mounts mounts
	log    *zap.Logger
}

var _ handler.Volume = volumes{}

func volumeName(id handler.VolumeID) string { return "volume " + string(id) }

const partitionToVolume = "MSFT_PartitionToVolume"

// volume reads properties of a volume.
func (v volumes) volume(ctx context.Context, id handler.VolumeID, properties ...string) (wmi.Instance, error) {
	found, err := v.row(ctx, volumeName(id), wmi.Query{
		Namespace: wmi.Storage, Class: "MSFT_Volume", Select: append([]string{objectID, "UniqueId"}, properties...),
		Where: []wmi.Equal{{Property: "UniqueId", Value: string(id)}},
	})
	if err != nil {
		return wmi.Instance{}, err
	}
	// The operation acts on this instance, so it must be the one that was asked for.
	if name, err := found.Text("UniqueId"); err != nil || !safepath.EqualFold(name, string(id)) {
		return wmi.Instance{}, fmt.Errorf("asked for %s, the host answered with another (%w)", volumeName(id), err)
	}
	return found, nil
}

// partitionsOf returns the partitions that a volume lies on.
func (v volumes) partitionsOf(ctx context.Context, id handler.VolumeID) ([]wmi.Instance, error) {
	volume, err := v.volume(ctx, id)
	if err != nil {
		return nil, err
	}
	return v.related(ctx, volumeName(id), volume, partitionToVolume, "MSFT_Partition")
}

// writable returns the partitions of a volume, if it may be changed: it lies on no disk and on no partition that the host
// runs from, or that is permitted.
func (v volumes) writable(ctx context.Context, id handler.VolumeID, permits handler.Permits) ([]wmi.Instance, error) {
	partitions, err := v.partitionsOf(ctx, id)
	if err != nil || permits.SystemDisk {
		return partitions, err
	}
	if len(partitions) == 0 {
		return nil, fmt.Errorf("the host does not say what disk %s is on: %w", volumeName(id), fs.ErrPermission)
	}
	for _, p := range partitions {
		if err := guard("a partition of "+volumeName(id), p, permits); err != nil {
			return nil, err
		}
		number, err := numberOf(p, "DiskNumber")
		if err != nil {
			return nil, fmt.Errorf("the host does not say what disk %s is on (%w): %w", volumeName(id), err, fs.ErrPermission)
		}
		disk, err := v.disk(ctx, number, "IsSystem", "IsBoot")
		if err != nil {
			return nil, err
		}
		if err := guard(diskName(number)+" of "+volumeName(id), disk, permits); err != nil {
			return nil, err
		}
	}
	return partitions, nil
}

// ListVolumesOnDisk implements [handler.Volume].
func (v volumes) ListVolumesOnDisk(ctx context.Context, disk, partition uint32) ([]handler.VolumeID, error) {
	var where []wmi.Equal
	if partition != 0 {
		where = []wmi.Equal{{Property: "PartitionNumber", Value: partition}}
	}
	partitions, err := v.partitions(ctx, disk, where...)
	if err != nil {
		return nil, err
	}
	var ids []handler.VolumeID
	for _, p := range partitions {
		found, err := v.related(ctx, "a partition of "+diskName(disk), p, partitionToVolume, "MSFT_Volume")
		if err != nil {
			return nil, err
		}
		for _, volume := range found {
			name, err := volume.Text("UniqueId")
			if err != nil {
				return nil, unknown("a volume on "+diskName(disk), err)
			}
			id, err := handler.ParseVolumeID(name)
			if err != nil { // no request could name it
				v.log.Warn("a volume has no name of the mount manager's", zap.String(logkeys.Name, diskName(disk)), zap.Error(err))
				continue
			}
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}

// DiskNumber implements [handler.Volume]. A volume over several disks has no one number.
func (v volumes) DiskNumber(ctx context.Context, id handler.VolumeID) (uint32, error) {
	partitions, err := v.partitionsOf(ctx, id)
	if err != nil {
		return 0, err
	}
	if len(partitions) == 0 {
		return 0, fmt.Errorf("the disk of %s: not found: %w", volumeName(id), fs.ErrNotExist)
	}
	var number uint32
	for i, p := range partitions {
		on, err := numberOf(p, "DiskNumber")
		switch {
		case err != nil:
			return 0, unknown(volumeName(id), err)
		case i > 0 && on != number:
			return 0, fmt.Errorf("%s is on disks %d and %d: %w", volumeName(id), number, on, handler.ErrPrecondition)
		}
		number = on
	}
	return number, nil
}

// GetVolumeStats implements [handler.Volume].
func (v volumes) GetVolumeStats(ctx context.Context, id handler.VolumeID) (handler.VolumeStats, error) {
	volume, err := v.volume(ctx, id, "Size", "SizeRemaining")
	if err != nil {
		return handler.VolumeStats{}, err
	}
	total, totalErr := bytesOf(volume, "Size")
	remaining, remainingErr := bytesOf(volume, "SizeRemaining")
	if err := errors.Join(totalErr, remainingErr); err != nil {
		return handler.VolumeStats{}, unknown(volumeName(id), err)
	}
	if remaining > total {
		return handler.VolumeStats{}, fmt.Errorf("%s has %d bytes free of %d", volumeName(id), remaining, total)
	}
	return handler.VolumeStats{Total: total, Used: total - remaining}, nil
}

// WriteVolumeCache implements [handler.Volume].
func (v volumes) WriteVolumeCache(ctx context.Context, id handler.VolumeID) error {
	volume, err := v.volume(ctx, id)
	if err != nil {
		return err
	}
	return v.flush(ctx, id, volume)
}

func (v volumes) flush(ctx context.Context, id handler.VolumeID, volume wmi.Instance) error {
	return v.invoke(ctx, volumeName(id), storageCodes, wmi.Call{
		Namespace: wmi.Storage, Class: "MSFT_Volume", Path: volume.Path, Method: "Flush",
	})
}
