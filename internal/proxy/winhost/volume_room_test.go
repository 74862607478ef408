package winhost

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

const mib = 1 << 20

// defragmented is disk 1 with 40 GiB, and on it what Windows reserves, A with 10 GiB and then B with 10 GiB, of whose room the storage service
// does not speak.
func defragmented(t *testing.T) (volumes, *fakeWMI, *observer.ObservedLogs) {
	t.Helper()
	v, f := newVolumes(t)
	core, logs := observer.New(zapcore.WarnLevel)
	v.log = zap.New(core)
	f.says("MSFT_Partition.GetSupportedSize", 4)
	f.set("disk1", "Size", uint64(40*gib))
	f.set("disk1", "PartitionStyle", uint64(styleGPT))
	f.set("disk1", "LargestFreeExtent", uint64(20*gib-17*mib-17*512))
	f.set("partC", "Offset", uint64(mib))
	f.set("partA", "Offset", uint64(17*mib))
	f.set("partB", "Offset", uint64(10*gib+17*mib))
	f.classes["MSFT_Partition"] = append(f.classes["MSFT_Partition"],
		row("reserved", properties{"DiskNumber": "1", "PartitionNumber": uint64(1), "GptType": gptReserved, "Offset": uint64(mib), "Size": uint64(16 * mib)}))
	return v, f, logs
}

func TestAVolumeGrowsWhereTheStorageServiceDoesNotSayHowFar(t *testing.T) {
	for name, fail := range map[string]func(f *fakeWMI){
		"it fails":            func(*fakeWMI) {},
		"it is not supported": func(f *fakeWMI) { f.says("MSFT_Partition.GetSupportedSize", 1) },
		"it fails as WMI":     func(f *fakeWMI) { f.fails["MSFT_Partition.GetSupportedSize"] = &wmi.Error{Code: 0x80070422} },
		"it says nothing":     supports(nil),
	} {
		t.Run(name, func(t *testing.T) {
			v, f, logs := defragmented(t)
			fail(f)
			wants(t, v.ResizeVolume(t.Context(), volumeB, 0, handler.Permits{}), nil)
			// 40 GiB, less the last MiB and what lies before: 30 GiB - 18 MiB.
			f.wantCalls("MSFT_Partition.GetSupportedSize partB", "MSFT_Partition.Resize partB [Size:32193380352]", "MSFT_Disk.Refresh disk1")
			entries := logs.All()
			if len(entries) != 1 || !strings.Contains(entries[0].Message, "defragsvc") || entries[0].ContextMap()["error"] == nil {
				t.Errorf("logged %+v", entries)
			}
		})
	}
}

func TestAVolumeDoesNotGrowOverAnother(t *testing.T) {
	v, f, _ := defragmented(t)
	wants(t, v.ResizeVolume(t.Context(), volumeA, 0, handler.Permits{}), nil) // B begins where A ends
	f.wantCalls("MSFT_Partition.GetSupportedSize partA")
}

func TestAVolumeDoesNotGrowIntoWhatIsNotKnown(t *testing.T) {
	for name, spoil := range map[string]func(f *fakeWMI){
		"the size of the disk":          func(f *fakeWMI) { f.set("disk1", "Size", nil) },
		"the free room of the disk":     func(f *fakeWMI) { f.set("disk1", "LargestFreeExtent", missing) },
		"the style of the disk":         func(f *fakeWMI) { f.set("disk1", "PartitionStyle", missing) },
		"a disk without partitions":     func(f *fakeWMI) { f.set("disk1", "PartitionStyle", uint64(styleRaw)) },
		"a style that nobody knows":     func(f *fakeWMI) { f.set("disk1", "PartitionStyle", uint64(3)) },
		"where it lies":                 func(f *fakeWMI) { f.set("partB", "Offset", missing) },
		"where another lies":            func(f *fakeWMI) { f.set("partA", "Offset", nil) },
		"how large another is":          func(f *fakeWMI) { f.set("reserved", "Size", "much") },
		"its type":                      func(f *fakeWMI) { f.set("partB", "GptType", missing) },
		"a type of dynamic disks":       func(f *fakeWMI) { f.set("partB", "GptType", "{af9b60a0-1431-4f62-bc68-3311714a69ad}") },
		"another over it":               func(f *fakeWMI) { f.set("partA", "Size", uint64(11*gib)) },
		"another in the same place":     func(f *fakeWMI) { f.set("partA", "Offset", uint64(10*gib+17*mib)) },
		"one that ends behind the disk": func(f *fakeWMI) { f.set("disk1", "Size", uint64(20*gib)) },
		"the list":                      func(f *fakeWMI) { f.classes["MSFT_Partition"] = nil },
		"the disk":                      func(f *fakeWMI) { f.fails["MSFT_Partition"] = errors.New("lost") },
	} {
		t.Run(name, func(t *testing.T) {
			v, f, logs := defragmented(t)
			spoil(f)
			err := v.ResizeVolume(t.Context(), volumeB, 0, handler.Permits{})
			if err == nil || !strings.Contains(err.Error(), "GetSupportedSize failed") || !strings.Contains(err.Error(), "defragsvc") {
				t.Errorf("got %v", err)
			}
			f.wantCalls("MSFT_Partition.GetSupportedSize partB")
			if logs.Len() > 0 {
				t.Errorf("logged %+v", logs.All())
			}
		})
	}
}

func TestWhatTheStorageServiceRefusesIsNotComputed(t *testing.T) {
	for code, want := range map[uint32]error{40001: fs.ErrPermission, 8: fs.ErrNotExist} {
		v, f, _ := defragmented(t)
		f.says("MSFT_Partition.GetSupportedSize", code)
		wants(t, v.ResizeVolume(t.Context(), volumeB, 0, handler.Permits{}), want)
		f.wantCalls("MSFT_Partition.GetSupportedSize partB")
	}
	v, f, _ := defragmented(t)
	f.fails["MSFT_Partition.GetSupportedSize"] = wmi.ErrBusy
	wants(t, v.ResizeVolume(t.Context(), volumeB, 0, handler.Permits{}), handler.ErrUnavailable)
	v, f, _ = defragmented(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.answers["MSFT_Partition.GetSupportedSize"] = func() answer { cancel(); return answer{code: 4} }
	if err := v.ResizeVolume(ctx, volumeB, 0, handler.Permits{}); err == nil || len(f.calls) != 1 {
		t.Errorf("got %v, called %v", err, f.calls)
	}
}

func TestGrowsTo(t *testing.T) {
	own := extent{mib, 10 * gib}
	for _, tt := range []struct {
		name       string
		own        extent
		others     []extent
		size, free int64
		want       int64 // 0 is an error
	}{
		{"to the last MiB of the disk", own, nil, 40 * gib, 30 * gib, 40*gib - 2*mib},
		{"to a MiB if the disk ends between two", own, nil, 40*gib + 5, 40 * gib, 40*gib - 2*mib},
		{"to the nearest partition", own, []extent{{30 * gib, gib}, {20 * gib, gib}, {0, mib}}, 40 * gib, 30 * gib, 20*gib - mib},
		{"to a MiB before the nearest", own, []extent{{20*gib + 512, gib}}, 40 * gib, 30 * gib, 20*gib - mib},
		{"as far as there is room anywhere", own, nil, 40 * gib, 5 * gib, 15 * gib},
		{"by whole MiB only", own, nil, 40 * gib, 5*gib + 512, 15 * gib},
		{"not at all before another", own, []extent{{10*gib + mib, gib}}, 40 * gib, 29 * gib, 10 * gib},
		{"not at all without room", own, nil, 40 * gib, 0, 10 * gib},
		{"not at all at the end", own, nil, 10*gib + mib, 40 * gib, 10 * gib},
		{"and does not shrink", extent{512, 10*gib + 512}, nil, 10*gib + 1024, 0, 10*gib + 512},
		{"with numbers that nearly do not fit", extent{0, 1}, nil, math.MaxInt64, math.MaxInt64, math.MaxInt64 - 2*mib + 1},
		{"behind the disk", extent{41 * gib, gib}, nil, 40 * gib, gib, 0},
		{"with others behind the disk", own, []extent{{39 * gib, 2 * gib}}, 40 * gib, gib, 0},
		{"with numbers that do not fit", own, []extent{{math.MaxInt64, math.MaxInt64}}, 40 * gib, gib, 0},
		{"within another", own, []extent{{0, 20 * gib}}, 40 * gib, gib, 0},
		{"with another within", own, []extent{{2 * mib, mib}}, 40 * gib, gib, 0},
	} {
		got, err := growsTo(tt.own, tt.others, tt.size, tt.free)
		if got != tt.want || (err == nil) != (tt.want != 0) {
			t.Errorf("%s: %d, %v; want %d", tt.name, got, err, tt.want)
		}
	}
}

// Whatever the disk looks like, the partition stays where no other is, and within what is not the disk's own.
func FuzzGrowsTo(f *testing.F) {
	f.Add(int64(mib), int64(10*gib), int64(20*gib), int64(gib), int64(40*gib), int64(30*gib))
	f.Add(int64(0), int64(1), int64(math.MaxInt64), int64(1), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, offset, size, otherOffset, otherSize, disk, free int64) {
		if min(offset, size, otherOffset, otherSize, disk, free) < 0 {
			return // bytesOf reads none
		}
		own, other := extent{offset, size}, extent{otherOffset, otherSize}
		got, err := growsTo(own, []extent{other}, disk, free)
		switch {
		case err != nil:
		case got < size, got > disk-offset, got-size > free:
			t.Fatalf("%+v grows to %d on a disk of %d with %d free", own, got, disk, free)
		case got > size && (got+offset > disk-mib || (got+offset)%mib != 0):
			t.Fatalf("%+v grows to %d on a disk of %d", own, got, disk)
		case got > size && otherSize > 0 && offset < other.end() && otherOffset < offset+got:
			t.Fatalf("%+v grows to %d over %+v", own, got, other)
		}
	})
}
