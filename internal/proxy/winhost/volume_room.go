package winhost

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// extent is a part of a disk, in bytes.
type extent struct{ offset, size int64 }

func (e extent) end() int64 { return e.offset + e.size }

// What is left free at the end of a disk, and to what ends are rounded down: Windows aligns partitions so. The second header
// of a GPT disk with its table takes 33 sectors of 512 bytes, or 5 of 4096.
const alignment = 1 << 20

// maxMBR is where the last partition of an MBR disk ends: 32 bits of sectors of 512 bytes.
const maxMBR = 2 << 40

// room computes to what size a partition can grow into the free space right behind it.
func (v volumes) room(ctx context.Context, disk uint32, partition wmi.Instance) (int64, error) {
	row, err := v.disk(ctx, disk, "Size", "PartitionStyle", "LargestFreeExtent")
	if err != nil {
		return 0, err
	}
	size, sizeErr := bytesOf(row, "Size")
	free, freeErr := bytesOf(row, "LargestFreeExtent")
	style, styleErr := row.Uint("PartitionStyle")
	own, ownErr := extentOf(partition)
	if err := errors.Join(sizeErr, freeErr, styleErr, ownErr); err != nil {
		return 0, unknown(diskName(disk), err)
	}
	switch style {
	case styleMBR:
		size = min(size, maxMBR)
	case styleGPT:
		if kind, err := partition.Text("GptType"); err != nil || !strings.EqualFold(kind, gptData) {
			return 0, fmt.Errorf("it is not a basic data partition but of type %q (%w)", kind, err)
		}
	default:
		return 0, fmt.Errorf("%s has partition style %d", diskName(disk), style)
	}
	others, err := v.extents(ctx, disk, own)
	if err != nil {
		return 0, err
	}
	return growsTo(own, others, size, free)
}

// extents returns where the other partitions of a disk lie, those that Windows reserves among them.
func (v volumes) extents(ctx context.Context, disk uint32, own extent) ([]extent, error) {
	what := "the partitions of " + diskName(disk)
	found, err := v.rows(ctx, what, wmi.Query{
		Namespace: wmi.Storage, Class: "MSFT_Partition", Select: []string{objectID, "DiskNumber", "Offset", "Size"},
		Where: []wmi.Equal{{Property: "DiskNumber", Value: disk}},
	})
	if err != nil {
		return nil, err
	}
	var others []extent
	seen := false
	for _, p := range found {
		e, err := extentOf(p)
		if err != nil {
			return nil, unknown(what, err)
		}
		if e == own && !seen {
			seen = true
			continue
		}
		others = append(others, e)
	}
	if !seen {
		return nil, fmt.Errorf("%s: it is not among them", what)
	}
	return others, nil
}

func extentOf(p wmi.Instance) (extent, error) {
	offset, offsetErr := bytesOf(p, "Offset")
	size, sizeErr := bytesOf(p, "Size")
	return extent{offset, size}, errors.Join(offsetErr, sizeErr)
}

// growsTo returns the size to which own can grow on a disk of size bytes, of which the largest free part has free bytes. It says
// less rather than more: never less than own has, and nothing if the parts cannot be as they are said to be.
func growsTo(own extent, others []extent, size, free int64) (int64, error) {
	for _, e := range append([]extent{own}, others...) {
		if e.offset > size || e.size > size-e.offset {
			return 0, fmt.Errorf("a partition at %d with %d bytes does not lie on a disk of %d", e.offset, e.size, size)
		}
	}
	end := min(size-alignment, own.end()+min(free, size-own.end()))
	for _, e := range others {
		switch {
		case e.offset >= own.end():
			end = min(end, e.offset)
		case e.end() > own.offset: // such as an extended partition, which holds others
			return 0, fmt.Errorf("the partition at %d overlaps with another at %d", own.offset, e.offset)
		}
	}
	return max(own.size, end-end%alignment-own.offset), nil
}
