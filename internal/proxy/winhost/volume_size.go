package winhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// noFileSystem is the FileSystemType of a volume on which Windows knows none.
const noFileSystem = 0

// minGrowth is the least by which a partition is resized: less is taken for rounding.
const minGrowth = 100 << 20

// IsVolumeFormatted implements [handler.Volume]: any file system counts.
func (v volumes) IsVolumeFormatted(ctx context.Context, id handler.VolumeID) (bool, error) {
	volume, err := v.volume(ctx, id, "FileSystemType")
	if err != nil {
		return false, err
	}
	kind, err := volume.Uint("FileSystemType")
	return kind != noFileSystem, unknown(volumeName(id), err)
}

// FormatVolume implements [handler.Volume]: quickly, with the file system's own defaults.
func (v volumes) FormatVolume(ctx context.Context, id handler.VolumeID, permits handler.Permits) error {
	if _, err := v.writable(ctx, id, permits); err != nil {
		return err
	}
	// Read last, so that as little as possible can come between the answer and the act.
	volume, err := v.volume(ctx, id, "FileSystemType")
	if err != nil {
		return err
	}
	if !permits.Reformat {
		kind, err := volume.Uint("FileSystemType")
		if err != nil {
			return unknown(volumeName(id), err)
		}
		if kind != noFileSystem {
			return fmt.Errorf("%s has a file system: %w", volumeName(id), fs.ErrExist)
		}
	}
	return v.invoke(ctx, volumeName(id), storageCodes, wmi.Call{
		Namespace: wmi.Storage, Class: "MSFT_Volume", Path: volume.Path, Method: "Format",
		In: map[string]any{"FileSystem": "NTFS", "FileSystemLabel": "", "Full": false, "Force": true},
	})
}

// ResizeVolume implements [handler.Volume].
func (v volumes) ResizeVolume(ctx context.Context, id handler.VolumeID, size int64, permits handler.Permits) error {
	if size < 0 {
		return fmt.Errorf("resize %s to %d bytes: %w", volumeName(id), size, fs.ErrInvalid)
	}
	partitions, err := v.writable(ctx, id, permits)
	if err != nil {
		return err
	}
	what := "the partition of " + volumeName(id)
	partition, err := only(what, partitions)
	if err != nil {
		return err
	}
	current, err := bytesOf(partition, "Size")
	if err != nil {
		return unknown(what, err)
	}
	disk, err := numberOf(partition, "DiskNumber")
	if err != nil {
		return unknown(what, err)
	}
	if size == 0 {
		if size, err = v.largest(ctx, what, disk, partition); err != nil {
			return err
		}
	}
	if size-current < minGrowth {
		return nil
	}
	if err := v.invoke(ctx, what, storageCodes, wmi.Call{
		Namespace: wmi.Storage, Class: "MSFT_Partition", Path: partition.Path, Method: "Resize",
		In: map[string]any{"Size": strconv.FormatInt(size, 10)},
	}); err != nil {
		return fmt.Errorf("resize to %d bytes: %w", size, err)
	}
	// The partition has its size. That others see it late is no reason to do it again.
	if err := v.refresh(ctx, disk); err != nil {
		v.log.Warn("a disk was not refreshed after a partition grew", zap.String(logkeys.Name, diskName(disk)), zap.Error(err))
	}
	return nil
}

// largest returns the size in bytes to which a partition can grow. The storage service asks the service defragsvc for it, and
// fails for as long as that is disabled or busy; the size is then computed from what lies on the disk.
func (v volumes) largest(ctx context.Context, what string, disk uint32, partition wmi.Instance) (int64, error) {
	size, err := v.supported(ctx, what, partition)
	if err == nil || ctx.Err() != nil || errors.Is(err, handler.ErrUnavailable) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return size, err
	}
	size, roomErr := v.room(ctx, disk, partition)
	if roomErr != nil {
		return 0, fmt.Errorf("%w (it needs the service defragsvc); and the room behind it cannot be computed: %w", err, roomErr)
	}
	v.log.Warn("the storage service does not say how far a partition can grow, so the room behind it is taken; is the service defragsvc disabled?",
		zap.String(logkeys.Name, what), zap.Error(err))
	return size, nil
}

func (v volumes) supported(ctx context.Context, what string, partition wmi.Instance) (int64, error) {
	result, err := v.answer(ctx, what, storageCodes, wmi.Call{
		Namespace: wmi.Storage, Class: "MSFT_Partition", Path: partition.Path, Method: "GetSupportedSize",
	})
	if err != nil {
		return 0, err
	}
	size, err := bytesOf(wmi.Instance{Properties: result.Out}, "SizeMax")
	return size, unknown(what, err)
}

func (v volumes) refresh(ctx context.Context, disk uint32) error {
	found, err := v.disk(ctx, disk)
	if err != nil {
		return err
	}
	return v.doDisk(ctx, disk, found, "Refresh", nil)
}
