package fakehost

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

type volume struct {
	Volume
	of   *disk
	root *node // what is seen at its mount points
}

// minGrowth is the least by which a partition is resized: less is taken for rounding.
const minGrowth = 100 * mib

func (h *Host) volume(id handler.VolumeID) (*volume, error) {
	v := h.volumes[id]
	if v == nil || !h.shows(v.of) {
		return nil, fmt.Errorf("volume %s: %w", id, fs.ErrNotExist)
	}
	return v, nil
}

// writable is volume, without those of the disk that the host runs from unless they are permitted.
func (h *Host) writable(id handler.VolumeID, permits handler.Permits) (*volume, error) {
	v, err := h.volume(id)
	if err == nil && v.of.System && !permits.SystemDisk {
		return nil, fmt.Errorf("volume %s is on disk %d, which the host runs from: %w", id, v.of.Number, fs.ErrPermission)
	}
	return v, err
}

// ListVolumesOnDisk implements [handler.Volume].
func (h *Host) ListVolumesOnDisk(ctx context.Context, disk, partition uint32) ([]handler.VolumeID, error) {
	return ask(ctx, h, "ListVolumesOnDisk", []string{number(disk), number(partition)}, func() ([]handler.VolumeID, error) {
		var found []*volume
		for _, v := range h.volumes {
			if v.of.Number == disk && h.shows(v.of) && (partition == 0 || v.Partition == partition) {
				found = append(found, v)
			}
		}
		slices.SortFunc(found, func(a, b *volume) int { return cmp.Compare(a.Partition, b.Partition) })
		ids := make([]handler.VolumeID, len(found))
		for i, v := range found {
			ids[i] = v.ID
		}
		return ids, nil
	})
}

// IsVolumeFormatted implements [handler.Volume].
func (h *Host) IsVolumeFormatted(ctx context.Context, id handler.VolumeID) (bool, error) {
	return about(ctx, h, "IsVolumeFormatted", string(id), h.volume, id, func(v *volume) bool { return v.Formatted })
}

// FormatVolume implements [handler.Volume].
func (h *Host) FormatVolume(ctx context.Context, id handler.VolumeID, permits handler.Permits) error {
	return h.change(ctx, "FormatVolume", []string{string(id)}, func() (bool, error) {
		v, err := h.writable(id, permits)
		if err != nil {
			return false, err
		}
		if v.Formatted && !permits.Reformat {
			return false, fmt.Errorf("volume %s has a file system: %w", id, fs.ErrExist)
		}
		v.Formatted = true
		return true, nil
	})
}

// ResizeVolume implements [handler.Volume].
func (h *Host) ResizeVolume(ctx context.Context, id handler.VolumeID, size int64, permits handler.Permits) error {
	return h.change(ctx, "ResizeVolume", []string{string(id), strconv.FormatInt(size, 10)}, func() (bool, error) {
		v, err := h.writable(id, permits)
		switch {
		case err != nil:
			return false, err
		case size < 0:
			return false, fmt.Errorf("resize volume %s to %d bytes: %w", id, size, fs.ErrInvalid)
		case size == 0:
			size = v.MaxSize
		}
		switch {
		case size < v.Size+minGrowth:
			return false, nil
		case size > v.MaxSize:
			return false, fmt.Errorf("resize volume %s to %d bytes: only %d are supported: %w", id, size, v.MaxSize, handler.ErrPrecondition)
		}
		v.Size = size
		return true, nil
	})
}

// GetVolumeStats implements [handler.Volume].
func (h *Host) GetVolumeStats(ctx context.Context, id handler.VolumeID) (handler.VolumeStats, error) {
	return ask(ctx, h, "GetVolumeStats", []string{string(id)}, func() (handler.VolumeStats, error) {
		v, err := h.volume(id)
		if err != nil || !v.Formatted {
			return handler.VolumeStats{}, err // without a file system there is no size to speak of
		}
		return handler.VolumeStats{Total: v.Size, Used: v.Used}, nil
	})
}

// DiskNumber implements [handler.Volume].
func (h *Host) DiskNumber(ctx context.Context, id handler.VolumeID) (uint32, error) {
	return about(ctx, h, "DiskNumber", string(id), h.volume, id, func(v *volume) uint32 { return v.of.Number })
}

// WriteVolumeCache implements [handler.Volume].
func (h *Host) WriteVolumeCache(ctx context.Context, id handler.VolumeID) error {
	return h.change(ctx, "WriteVolumeCache", []string{string(id)}, func() (bool, error) {
		_, err := h.volume(id)
		return false, err
	})
}
