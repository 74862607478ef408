package winhost

import (
	"context"
	"fmt"
	"math"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// disks are the disks of the host, as MSFT_Disk shows them.
// https://learn.microsoft.com/windows-hardware/drivers/storage/msft-disk
type disks struct {
	asked
	devices devices
	log     *zap.Logger
}

var _ handler.Disk = disks{}

func diskName(disk uint32) string { return fmt.Sprintf("disk %d", disk) }

// disk reads properties of a disk.
func (a asked) disk(ctx context.Context, disk uint32, properties ...string) (wmi.Instance, error) {
	found, err := a.row(ctx, diskName(disk), wmi.Query{
		Namespace: wmi.Storage, Class: "MSFT_Disk", Select: append([]string{objectID, "Number"}, properties...),
		Where: []wmi.Equal{{Property: "Number", Value: disk}},
	})
	if err != nil {
		return wmi.Instance{}, err
	}
	// The operation acts on this instance, so it must be the one that was asked for.
	if number, err := found.Uint("Number"); err != nil || number != uint64(disk) {
		return wmi.Instance{}, fmt.Errorf("asked for %s, the host answered with another (%w)", diskName(disk), err)
	}
	return found, nil
}

// writable is disk, without those that the host runs from unless they are permitted.
func (d disks) writable(ctx context.Context, disk uint32, permits handler.Permits, properties ...string) (wmi.Instance, error) {
	found, err := d.disk(ctx, disk, append(properties, "IsSystem", "IsBoot")...)
	if err != nil {
		return wmi.Instance{}, err
	}
	return found, guard(diskName(disk), found, permits)
}

// doDisk executes a method of a disk.
func (a asked) doDisk(ctx context.Context, disk uint32, of wmi.Instance, method string, in map[string]any, fine ...uint32) error {
	return a.invoke(ctx, diskName(disk), storageCodes, wmi.Call{
		Namespace: wmi.Storage, Class: "MSFT_Disk", Path: of.Path, Method: method, In: in,
	}, fine...)
}

// DiskSize implements [handler.Disk].
func (d disks) DiskSize(ctx context.Context, disk uint32) (int64, error) {
	found, err := d.disk(ctx, disk, "Size")
	if err != nil {
		return 0, err
	}
	size, err := bytesOf(found, "Size")
	return size, unknown(diskName(disk), err)
}

// bytesOf reads a number of bytes, which the API carries with a sign.
func bytesOf(of wmi.Instance, property string) (int64, error) {
	n, err := of.Uint(property)
	if err != nil {
		return 0, err
	}
	if n > math.MaxInt64 {
		return 0, fmt.Errorf("%s is %d bytes, more than can be said", property, n)
	}
	return int64(n), nil
}

// IsDiskOnline implements [handler.Disk].
func (d disks) IsDiskOnline(ctx context.Context, disk uint32) (bool, error) {
	found, err := d.disk(ctx, disk, "IsOffline")
	if err != nil {
		return false, err
	}
	offline, err := found.Bool("IsOffline")
	return !offline && err == nil, unknown(diskName(disk), err)
}

// SetDiskOnline implements [handler.Disk].
func (d disks) SetDiskOnline(ctx context.Context, disk uint32, online bool, permits handler.Permits) error {
	found, err := d.writable(ctx, disk, permits, "IsOffline")
	if err != nil {
		return err
	}
	offline, err := found.Bool("IsOffline")
	if err != nil {
		return unknown(diskName(disk), err)
	}
	if online != offline {
		return nil
	}
	method := "Offline"
	if online {
		method = "Online"
	}
	return d.doDisk(ctx, disk, found, method, nil)
}

// Rescan implements [handler.Disk].
func (d disks) Rescan(ctx context.Context) error {
	return d.invoke(ctx, "the storage cache", storageCodes, wmi.Call{
		Namespace: wmi.Storage, Class: "MSFT_StorageSetting", Method: "UpdateHostStorageCache",
	})
}
