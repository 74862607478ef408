package fakehost

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

type disk struct{ Disk }

func newDisk(d Disk) *disk {
	if d.Size == 0 {
		for _, v := range d.Volumes {
			d.Size += v.MaxSize
		}
	}
	return &disk{d}
}

// attach makes the host see a disk and its volumes.
func (h *Host) attach(d *disk) {
	h.disks[d.Number] = d
	for _, v := range d.Volumes {
		h.volumes[v.ID] = &volume{Volume: v, of: d, root: newDir(string(v.ID))}
		if v.Drive != 0 {
			h.drives[v.Drive] = h.volumes[v.ID].root
		}
	}
	d.Volumes = nil // they are the host's now, and stay as they are when the disk goes and comes again
}

// shows says whether the volumes of a disk are to be seen.
func (h *Host) shows(d *disk) bool { return h.disks[d.Number] == d && !d.Offline }

func (h *Host) disk(number uint32) (*disk, error) {
	d := h.disks[number]
	if d == nil {
		return nil, handler.NotFound("failed to query disk %d. error: not found", number)
	}
	return d, nil
}

// changeable is disk, without that which the host runs from unless it is permitted.
func (h *Host) changeable(number uint32, permits handler.Permits) (*disk, error) {
	d, err := h.disk(number)
	if err == nil && d.System && !permits.SystemDisk {
		return nil, fmt.Errorf("disk %d is one that the host runs from: %w", number, fs.ErrPermission)
	}
	return d, err
}

func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// ListDiskLocations implements [handler.Disk].
func (h *Host) ListDiskLocations(ctx context.Context) (map[uint32]handler.DiskLocation, error) {
	return ask(ctx, h, "ListDiskLocations", nil, func() (map[uint32]handler.DiskLocation, error) {
		locations := map[uint32]handler.DiskLocation{}
		for n, d := range h.disks {
			if d.Location != (handler.DiskLocation{}) {
				locations[n] = d.Location
			}
		}
		return locations, nil
	})
}

// ListDiskIDs implements [handler.Disk].
func (h *Host) ListDiskIDs(ctx context.Context) (map[uint32]handler.DiskIDs, error) {
	return ask(ctx, h, "ListDiskIDs", nil, func() (map[uint32]handler.DiskIDs, error) {
		ids := map[uint32]handler.DiskIDs{}
		for n, d := range h.disks {
			ids[n] = d.IDs
		}
		return ids, nil
	})
}

// PartitionDisk implements [handler.Disk]. The volume of the new partition has no file system.
func (h *Host) PartitionDisk(ctx context.Context, disk uint32, permits handler.Permits) error {
	return h.change(ctx, "PartitionDisk", []string{number(disk)}, func() (bool, error) {
		d, err := h.changeable(disk, permits)
		if err != nil {
			return false, err
		}
		for _, v := range h.volumes {
			if v.of == d {
				return false, nil
			}
		}
		id := NewVolume(disk)
		h.volumes[id] = &volume{Volume: Volume{ID: id, Partition: 1, Size: d.Size, MaxSize: d.Size}, of: d, root: newDir(string(id))}
		d.Offline = false
		return true, nil
	})
}

// NewVolume returns the id that the volume of a disk has after the host has partitioned it.
func NewVolume(disk uint32) handler.VolumeID {
	return handler.VolumeID(fmt.Sprintf(`\\?\Volume{00000000-0000-4000-9000-%012x}\`, disk))
}

// Rescan implements [handler.Disk].
func (h *Host) Rescan(ctx context.Context) error {
	return h.change(ctx, "Rescan", nil, func() (bool, error) { return false, nil })
}

// DiskSize implements [handler.Disk].
func (h *Host) DiskSize(ctx context.Context, n uint32) (int64, error) {
	return about(ctx, h, "DiskSize", number(n), h.disk, n, func(d *disk) int64 { return d.Size })
}

// IsDiskOnline implements [handler.Disk].
func (h *Host) IsDiskOnline(ctx context.Context, n uint32) (bool, error) {
	return about(ctx, h, "IsDiskOnline", number(n), h.disk, n, func(d *disk) bool { return !d.Offline })
}

// SetDiskOnline implements [handler.Disk].
func (h *Host) SetDiskOnline(ctx context.Context, disk uint32, online bool, permits handler.Permits) error {
	return h.change(ctx, "SetDiskOnline", []string{number(disk), strconv.FormatBool(online)}, func() (bool, error) {
		d, err := h.changeable(disk, permits)
		if err != nil || d.Offline == !online {
			return false, err
		}
		d.Offline = !online
		return true, nil
	})
}
