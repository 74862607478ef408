package winhost

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

const (
	volumeC = handler.VolumeID(`\\?\Volume{00000000-0000-0000-0000-00000000000c}\`)
	volumeA = handler.VolumeID(`\\?\Volume{00000000-0000-0000-0000-00000000000a}\`)
	volumeB = handler.VolumeID(`\\?\Volume{00000000-0000-0000-0000-00000000000b}\`)
	volumeX = handler.VolumeID(`\\?\Volume{ffffffff-ffff-ffff-ffff-ffffffffffff}\`) // there is none
)

const gib = 1 << 30

// newVolumes has hand-made volumes: C on the system disk 0, A (formatted) and B (not) on disk 1.
func newVolumes(t *testing.T) (volumes, *fakeWMI) {
	t.Helper()
	f := newFakeWMI(t)
	disk := func(path, number string, system bool) wmi.Instance {
		return row(path, properties{"Number": number, "IsSystem": system, "IsBoot": system})
	}
	partition := func(path, disk string, number uint64, system bool, letter string) wmi.Instance {
		return row(path, properties{
			"DiskNumber": disk, "PartitionNumber": number, "GptType": gptData, "IsSystem": system, "IsBoot": system,
			"Size": "10737418240", "DriveLetter": letter,
		})
	}
	volume := func(path string, id handler.VolumeID, kind uint64) wmi.Instance {
		return row(path, properties{"UniqueId": string(id), "FileSystemType": kind, "Size": "10737418240", "SizeRemaining": "7516192768"})
	}
	f.classes["MSFT_Disk"] = []wmi.Instance{disk("disk0", "0", true), disk("disk1", "1", false)}
	pc, pa, pb := partition("partC", "0", 3, true, "C"), partition("partA", "1", 2, false, "D"), partition("partB", "1", 3, false, "")
	f.classes["MSFT_Partition"] = []wmi.Instance{pb, pc, pa}
	vc, va, vb := volume("volC", volumeC, 14), volume("volA", volumeA, 14), volume("volB", volumeB, 0)
	f.classes["MSFT_Volume"] = []wmi.Instance{vc, va, vb}
	for _, pair := range [][2]wmi.Instance{{pc, vc}, {pa, va}, {pb, vb}} {
		f.related[pair[0].Path+">MSFT_Volume"] = []wmi.Instance{pair[1]}
		f.related[pair[1].Path+">MSFT_Partition"] = []wmi.Instance{pair[0]}
	}
	return volumes{asked: asked{WMI: f}, log: zap.NewNop()}, f
}

func TestListVolumesOnDisk(t *testing.T) {
	v, f := newVolumes(t)
	tests := []struct {
		disk, partition uint32
		want            []handler.VolumeID
	}{
		{1, 0, []handler.VolumeID{volumeA, volumeB}},
		{1, 2, []handler.VolumeID{volumeA}},
		{1, 9, nil},
		{7, 0, nil},
	}
	for _, test := range tests {
		got, err := v.ListVolumesOnDisk(t.Context(), test.disk, test.partition)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("disk %d, partition %d: %v (-want +got):\n%s", test.disk, test.partition, err, diff)
		}
	}
	f.set("volA", "UniqueId", `\\?\GLOBALROOT\x`) // nothing that a request could name
	if got, err := v.ListVolumesOnDisk(t.Context(), 1, 0); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	f.set("volA", "UniqueId", nil)
	if got, err := v.ListVolumesOnDisk(t.Context(), 1, 0); err == nil {
		t.Errorf("a volume without a name: got %v", got)
	}
	f.fails["partA>MSFT_Volume"] = errors.New("lost")
	_, err := v.ListVolumesOnDisk(t.Context(), 1, 0)
	wants(t, err, f.fails["partA>MSFT_Volume"], "MSFT_PartitionToVolume", "disk 1")
}

// writes are the operations that the guard stands before. Each acts on C.
var writes = map[string]func(volumes, context.Context, handler.Permits) error{
	"FormatVolume": func(v volumes, ctx context.Context, p handler.Permits) error {
		p.Reformat = true
		return v.FormatVolume(ctx, volumeC, p)
	},
	"ResizeVolume": func(v volumes, ctx context.Context, p handler.Permits) error {
		return v.ResizeVolume(ctx, volumeC, 20*gib, p)
	},
	"ResizeVolume to nothing": func(v volumes, ctx context.Context, p handler.Permits) error {
		return v.ResizeVolume(ctx, volumeC, 1, p)
	},
}

func TestVolumesOfDisksThatTheHostRunsFromAreNotChanged(t *testing.T) {
	data := func(f *fakeWMI) { // C looks like a volume of a data disk, but for what the state changes
		for _, path := range []string{"disk0", "partC"} {
			f.set(path, "IsSystem", false)
			f.set(path, "IsBoot", false)
		}
	}
	states := map[string]func(*fakeWMI){
		"on the system disk":                   func(*fakeWMI) {},
		"on a disk that is system":             func(f *fakeWMI) { data(f); f.set("disk0", "IsSystem", true) },
		"on a disk that is boot":               func(f *fakeWMI) { data(f); f.set("disk0", "IsBoot", true) },
		"on a partition that is system":        func(f *fakeWMI) { data(f); f.set("partC", "IsSystem", true) },
		"on a partition that is boot":          func(f *fakeWMI) { data(f); f.set("partC", "IsBoot", true) },
		"on a disk that does not say system":   func(f *fakeWMI) { data(f); f.set("disk0", "IsSystem", nil) },
		"on a disk without boot":               func(f *fakeWMI) { data(f); f.set("disk0", "IsBoot", missing) },
		"on a partition that does not say":     func(f *fakeWMI) { data(f); f.set("partC", "IsSystem", missing) },
		"on a partition that says it in words": func(f *fakeWMI) { data(f); f.set("partC", "IsBoot", "no") },
		"on no partition":                      func(f *fakeWMI) { data(f); f.related["volC>MSFT_Partition"] = nil },
		"on a partition without a disk":        func(f *fakeWMI) { data(f); f.set("partC", "DiskNumber", nil) },
		"on a partition of disk 2^32":          func(f *fakeWMI) { data(f); f.set("partC", "DiskNumber", "4294967296") },
		"on a system disk besides a data disk": func(f *fakeWMI) {
			f.related["volC>MSFT_Partition"] = []wmi.Instance{f.related["volA>MSFT_Partition"][0], f.related["volC>MSFT_Partition"][0]}
		},
	}
	for name, act := range writes {
		for state, change := range states {
			t.Run(name+" of a volume "+state, func(t *testing.T) {
				v, f := newVolumes(t)
				change(f)
				wants(t, act(v, t.Context(), handler.Permits{}), fs.ErrPermission, string(volumeC))
				f.wantCalls()
			})
		}
		t.Run(name+" of a volume whose disk is not there", func(t *testing.T) {
			v, f := newVolumes(t)
			data(f)
			f.classes["MSFT_Disk"] = nil
			wants(t, act(v, t.Context(), handler.Permits{}), fs.ErrNotExist)
			f.wantCalls()
		})
		t.Run(name+" when permitted", func(t *testing.T) {
			v, _ := newVolumes(t)
			wants(t, act(v, t.Context(), permitted), nil)
		})
	}
}

func TestGetVolumeStats(t *testing.T) {
	v, _ := newVolumes(t)
	got, err := v.GetVolumeStats(t.Context(), volumeA)
	if want := (handler.VolumeStats{Total: 10 * gib, Used: 3 * gib}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []struct {
		property string
		value    any
	}{{"Size", nil}, {"Size", "x"}, {"Size", "18446744073709551615"}, {"Size", "1"}, {"SizeRemaining", nil}, {"SizeRemaining", missing}, {"SizeRemaining", "10737418241"}} {
		v, f := newVolumes(t)
		f.set("volA", bad.property, bad.value)
		if got, err := v.GetVolumeStats(t.Context(), volumeA); err == nil {
			t.Errorf("%s %v: got %+v", bad.property, bad.value, got)
		}
	}
}

func TestDiskNumberOfAVolume(t *testing.T) {
	v, f := newVolumes(t)
	if got, err := v.DiskNumber(t.Context(), volumeB); err != nil || got != 1 {
		t.Errorf("got %d, %v", got, err)
	}
	f.related["volB>MSFT_Partition"] = append(f.related["volB>MSFT_Partition"], f.related["volC>MSFT_Partition"]...)
	_, err := v.DiskNumber(t.Context(), volumeB)
	wants(t, err, handler.ErrPrecondition)
	f.related["volB>MSFT_Partition"] = nil
	_, err = v.DiskNumber(t.Context(), volumeB)
	wants(t, err, fs.ErrNotExist, "not found")
	f.set("partA", "DiskNumber", "-1")
	if got, err := v.DiskNumber(t.Context(), volumeA); err == nil {
		t.Errorf("got %d", got)
	}
}

func TestWriteVolumeCacheFlushes(t *testing.T) {
	v, f := newVolumes(t)
	wants(t, v.WriteVolumeCache(t.Context(), volumeA), nil)
	f.wantCalls("MSFT_Volume.Flush volA")
	f.says("MSFT_Volume.Flush", 40004)
	if err := v.WriteVolumeCache(t.Context(), volumeA); err == nil {
		t.Error("a flush that failed is success")
	}
}

// asks are all operations that name a volume and no path.
var asks = map[string]func(volumes, context.Context, handler.VolumeID) error{
	"IsVolumeFormatted": func(v volumes, ctx context.Context, id handler.VolumeID) error {
		_, err := v.IsVolumeFormatted(ctx, id)
		return err
	},
	"FormatVolume": func(v volumes, ctx context.Context, id handler.VolumeID) error {
		return v.FormatVolume(ctx, id, handler.Permits{})
	},
	"ResizeVolume": func(v volumes, ctx context.Context, id handler.VolumeID) error {
		return v.ResizeVolume(ctx, id, 0, permitted)
	},
	"GetVolumeStats": func(v volumes, ctx context.Context, id handler.VolumeID) error {
		_, err := v.GetVolumeStats(ctx, id)
		return err
	},
	"DiskNumber": func(v volumes, ctx context.Context, id handler.VolumeID) error {
		_, err := v.DiskNumber(ctx, id)
		return err
	},
	"WriteVolumeCache": func(v volumes, ctx context.Context, id handler.VolumeID) error { return v.WriteVolumeCache(ctx, id) },
}

func TestVolumesThatCannotBeFound(t *testing.T) {
	lost := errors.New("lost")
	for name, act := range asks {
		v, f := newVolumes(t)
		wants(t, act(v, t.Context(), volumeX), fs.ErrNotExist, string(volumeX))
		wants(t, act(v, ended(t), volumeB), context.Canceled)
		f.fails["MSFT_Volume"] = lost
		wants(t, act(v, t.Context(), volumeB), lost, string(volumeB))
		delete(f.fails, "MSFT_Volume")
		f.classes["MSFT_Volume"] = append(f.classes["MSFT_Volume"], f.classes["MSFT_Volume"]...)
		if err := act(v, t.Context(), volumeB); err == nil {
			t.Errorf("%s: two volumes of one name are one", name)
		}
		for _, lie := range []any{string(volumeA), nil, missing} {
			v, f := newVolumes(t)
			v.asked = asked{WMI: liar{f, func(r wmi.Instance) wmi.Instance {
				if r.Path == "volB" {
					r.Properties = properties{"FileSystemType": uint64(0), "Size": "1", "SizeRemaining": "0", "UniqueId": lie}
					if lie == missing {
						delete(r.Properties, "UniqueId")
					}
				}
				return r
			}}}
			if err := act(v, t.Context(), volumeB); err == nil {
				t.Errorf("%s: UniqueId %v is taken for %s", name, lie, volumeB)
			}
			f.wantCalls()
		}
	}
}
