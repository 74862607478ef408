package handler

import "context"

// DiskLocation says where a disk is attached. Each field is a decimal number as text, as far as the host knows it.
type DiskLocation struct{ Adapter, Bus, Target, LUN string }

// DiskIDs are the identifiers of a disk.
type DiskIDs struct {
	Page83       string // first identifier of the device in its SCSI page 0x83: text, or lower-case hexadecimal; may be empty
	SerialNumber string
}

// Disk is the part of a host that holds disks. An unknown number is fs.ErrNotExist. To partition a disk that the host
// itself runs from, or to change its state, is refused with fs.ErrPermission unless permits.SystemDisk.
type Disk interface {
	// ListDiskLocations leaves out disks whose location the host cannot tell.
	ListDiskLocations(ctx context.Context) (map[uint32]DiskLocation, error)
	// ListDiskIDs leaves nothing out: a disk that does not answer has empty ids.
	ListDiskIDs(ctx context.Context) (map[uint32]DiskIDs, error)
	// PartitionDisk initialises a raw disk as GPT, makes one partition of all its room if it has none, and brings the first
	// partition online. A disk that is partitioned already is success, and no partition of it is changed.
	PartitionDisk(ctx context.Context, disk uint32, permits Permits) error
	// Rescan looks for disks that have come, gone or changed their size.
	Rescan(ctx context.Context) error
	// DiskSize returns the size of a disk in bytes.
	DiskSize(ctx context.Context, disk uint32) (int64, error)
	// IsDiskOnline says whether a disk is online.
	IsDiskOnline(ctx context.Context, disk uint32) (bool, error)
	// SetDiskOnline brings a disk online or takes it offline. The state that it has already is success.
	SetDiskOnline(ctx context.Context, disk uint32, online bool, permits Permits) error
}
