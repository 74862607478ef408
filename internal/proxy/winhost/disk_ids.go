package winhost

import (
	"context"
	"fmt"
	"math"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// devices asks the driver of a disk.
type devices interface {
	// Describe returns the number of the disk at a device path and its STORAGE_DEVICE_ID_DESCRIPTOR.
	Describe(path string) (number uint32, descriptor []byte, err error)
}

// ListDiskIDs implements [handler.Disk]. The serial number is the storage service's: it is known even if the disk's
// driver does not answer.
func (d disks) ListDiskIDs(ctx context.Context) (map[uint32]handler.DiskIDs, error) {
	found, err := d.rows(ctx, "the disks", wmi.Query{
		Namespace: wmi.Storage, Class: "MSFT_Disk", Select: []string{"Number", "Path", "SerialNumber"},
	})
	if err != nil {
		return nil, err
	}
	ids := map[uint32]handler.DiskIDs{}
	for _, row := range found {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		number, err := numberOf(row, "Number")
		if err != nil {
			return nil, unknown("the disks", err)
		}
		own := handler.DiskIDs{}
		if row.Has("SerialNumber") {
			if own.SerialNumber, err = row.Text("SerialNumber"); err != nil {
				return nil, unknown(diskName(number), err)
			}
		}
		if own.Page83, err = d.page83(number, row); err != nil {
			d.log.Warn("a disk does not say its page 83", zap.String(logkeys.Name, diskName(number)), zap.Error(err))
		}
		ids[number] = own
	}
	return ids, nil
}

func (d disks) page83(number uint32, row wmi.Instance) (string, error) {
	path, err := row.Text("Path")
	if err != nil {
		return "", err
	}
	answered, descriptor, err := d.devices.Describe(path)
	if err != nil {
		return "", err
	}
	if answered != number {
		return "", fmt.Errorf("%s is disk %d by now", path, answered)
	}
	return page83(descriptor)
}

// numberOf reads a number of 32 bits.
func numberOf(of wmi.Instance, property string) (uint32, error) {
	n, err := of.Uint(property)
	if err != nil {
		return 0, err
	}
	if n > math.MaxUint32 {
		return 0, fmt.Errorf("%s is %d, which is no number of a disk or partition", property, n)
	}
	return uint32(n), nil
}
