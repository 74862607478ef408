package winhost

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// Partition styles and types.
// https://learn.microsoft.com/windows-hardware/drivers/storage/createpartition-msft-disk
const (
	styleRaw = 0
	styleMBR = 1
	styleGPT = 2

	mbrIFS      = 7                                        // NTFS
	gptReserved = "{e3c9e316-0b5c-4db8-817d-f92df00215ae}" // Windows makes one itself when it initialises a disk
	gptData     = "{ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}"
)

// PartitionDisk implements [handler.Disk].
func (d disks) PartitionDisk(ctx context.Context, disk uint32, permits handler.Permits) error {
	found, err := d.writable(ctx, disk, permits, "PartitionStyle")
	if err != nil {
		return err
	}
	style, err := found.Uint("PartitionStyle")
	if err != nil {
		return unknown(diskName(disk), err)
	}
	if style == styleRaw {
		// Another program may have been faster; then the disk has partitions below, or gets one.
		if err := d.doDisk(ctx, disk, found, "Initialize", map[string]any{"PartitionStyle": uint16(styleGPT)}, diskInitialized); err != nil {
			return err
		}
		style = styleGPT
	}
	partitions, err := d.partitions(ctx, disk)
	if err != nil {
		return err
	}
	if len(partitions) > 0 { // also one that an earlier attempt has made and not brought online
		return d.bringOnline(ctx, disk, partitions[0])
	}
	in := map[string]any{"UseMaximumSize": true, "AssignDriveLetter": false, "IsHidden": false, "IsActive": false, "GptType": gptData}
	if style == styleMBR {
		delete(in, "GptType")
		in["MbrType"] = uint16(mbrIFS)
	}
	// The partition is made even if an access path of it is in use.
	if err := d.doDisk(ctx, disk, found, "CreatePartition", in, accessPathInUse); err != nil {
		return err
	}
	if err := d.doDisk(ctx, disk, found, "Refresh", nil); err != nil { // the partition may show without it
		d.log.Warn("a disk was not refreshed after it was partitioned", zap.String(logkeys.Name, diskName(disk)), zap.Error(err))
	}
	if partitions, err = d.partitions(ctx, disk); err != nil {
		return err
	}
	if len(partitions) == 0 {
		return fmt.Errorf("partition %s: the partition that was made is not there", diskName(disk))
	}
	return d.bringOnline(ctx, disk, partitions[0])
}

// bringOnline has a partition mounted by the mount manager; one that is already is success.
// https://learn.microsoft.com/windows-hardware/drivers/storage/msft-partition-online
func (d disks) bringOnline(ctx context.Context, disk uint32, partition wmi.Instance) error {
	return d.invoke(ctx, "the first partition of "+diskName(disk), storageCodes, wmi.Call{
		Namespace: wmi.Storage, Class: "MSFT_Partition", Path: partition.Path, Method: "Online",
	})
}

// partitions returns the partitions of a disk that can hold data, in order. One without a type, as on an MBR disk, can.
func (a asked) partitions(ctx context.Context, disk uint32, where ...wmi.Equal) ([]wmi.Instance, error) {
	what := "the partitions of " + diskName(disk)
	found, err := a.rows(ctx, what, wmi.Query{
		Namespace: wmi.Storage, Class: "MSFT_Partition", Select: []string{objectID, "DiskNumber", "PartitionNumber", "GptType"},
		Where: append([]wmi.Equal{{Property: "DiskNumber", Value: disk}}, where...),
	})
	if err != nil {
		return nil, err
	}
	numbers := map[string]uint64{}
	for _, p := range found {
		if numbers[p.Path], err = p.Uint("PartitionNumber"); err != nil {
			return nil, unknown(what, err)
		}
		if on, err := p.Uint("DiskNumber"); err != nil || on != uint64(disk) {
			return nil, fmt.Errorf("%s: the host answered with one of another (%w)", what, err)
		}
	}
	found = slices.DeleteFunc(found, func(p wmi.Instance) bool {
		kind, err := p.Text("GptType")
		return err == nil && strings.EqualFold(kind, gptReserved)
	})
	slices.SortFunc(found, func(a, b wmi.Instance) int { return cmp.Compare(numbers[a.Path], numbers[b.Path]) })
	return found, nil
}
