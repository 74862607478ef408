package winhost

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

const formatted = "MSFT_Volume.Format volB [FileSystem:NTFS FileSystemLabel: Force:true Full:false]"

func TestFormatVolumeFormatsOnceUnlessPermitted(t *testing.T) {
	v, f := newVolumes(t)
	f.changes["MSFT_Volume.Format"] = func(wmi.Call) { f.set("volB", "FileSystemType", uint64(14)) }
	wants(t, v.FormatVolume(t.Context(), volumeB, handler.Permits{}), nil)
	f.wantCalls(formatted)
	for range 2 {
		wants(t, v.FormatVolume(t.Context(), volumeB, handler.Permits{}), fs.ErrExist, "has a file system")
		wants(t, v.FormatVolume(t.Context(), volumeB, handler.Permits{SystemDisk: true}), fs.ErrExist)
	}
	f.wantCalls(formatted)
	wants(t, v.FormatVolume(t.Context(), volumeB, handler.Permits{Reformat: true}), nil)
	f.wantCalls(formatted, formatted)
}

func TestFormatVolumeRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, kind := range []any{nil, missing, "NTFS", "", -1, true, uint64(1), uint64(0x8000), "14"} {
		v, f := newVolumes(t)
		f.set("volB", "FileSystemType", kind)
		if err := v.FormatVolume(t.Context(), volumeB, handler.Permits{}); err == nil {
			t.Errorf("a volume with file system %v was formatted", kind)
		}
		f.wantCalls()
	}
	v, f := newVolumes(t)
	f.says("MSFT_Volume.Format", 43006)
	wants(t, v.FormatVolume(t.Context(), volumeB, handler.Permits{}), handler.ErrPrecondition, "WMI MSFT_Volume.Format failed", string(volumeB), "code=43006")
	f.says("MSFT_Volume.Format", 42010)
	wants(t, v.FormatVolume(t.Context(), volumeB, permitted), fs.ErrPermission, "code=42010")
}

func TestIsVolumeFormattedCountsEveryFileSystem(t *testing.T) {
	v, f := newVolumes(t)
	for kind, want := range map[any]bool{uint64(0): false, "0": false, uint64(14): true, uint64(7): true, uint64(0x8000): true} {
		f.set("volB", "FileSystemType", kind)
		if got, err := v.IsVolumeFormatted(t.Context(), volumeB); err != nil || got != want {
			t.Errorf("%v: got %t, %v", kind, got, err)
		}
	}
	for _, kind := range []any{nil, missing, "NTFS"} {
		f.set("volB", "FileSystemType", kind)
		if got, err := v.IsVolumeFormatted(t.Context(), volumeB); err == nil {
			t.Errorf("%v: got %t", kind, got)
		}
	}
}

func TestResizeVolume(t *testing.T) {
	tests := []struct {
		name  string
		size  int64
		spoil func(f *fakeWMI)
		kind  error
		calls []string
	}{
		{"it grows", 20 * gib, nil, nil, []string{"MSFT_Partition.Resize partB [Size:21474836480]", "MSFT_Disk.Refresh disk1"}},
		{"it grows by just enough", 10*gib + minGrowth, nil, nil, []string{"MSFT_Partition.Resize partB [Size:10842275840]", "MSFT_Disk.Refresh disk1"}},
		{"by less it does not", 10*gib + minGrowth - 1, nil, nil, nil},
		{"to what it has it does not", 10 * gib, nil, nil, nil},
		{"it does not shrink", 1, nil, nil, nil},
		{"as far as it goes", 0, nil, nil, []string{"MSFT_Partition.GetSupportedSize partB", "MSFT_Partition.Resize partB [Size:32212254720]", "MSFT_Disk.Refresh disk1"}},
		{"as far as it is", 0, supports("10737418240"), nil, []string{"MSFT_Partition.GetSupportedSize partB"}},
		{"that the disk is not refreshed is no failure", 20 * gib, func(f *fakeWMI) { f.says("MSFT_Disk.Refresh", 4) }, nil,
			[]string{"MSFT_Partition.Resize partB [Size:21474836480]", "MSFT_Disk.Refresh disk1"}},
		{"less than nothing", -1, nil, fs.ErrInvalid, nil},
		{"further than it goes", 1 << 62, func(f *fakeWMI) { f.says("MSFT_Partition.Resize", 4097) }, handler.ErrPrecondition, []string{"MSFT_Partition.Resize partB [Size:4611686018427387904]"}},
		{"with an unknown file system", 20 * gib, func(f *fakeWMI) { f.says("MSFT_Partition.Resize", 42009) }, handler.ErrPrecondition, []string{"MSFT_Partition.Resize partB [Size:21474836480]"}},
		{"without access", 20 * gib, func(f *fakeWMI) { f.says("MSFT_Partition.Resize", 40001) }, fs.ErrPermission, []string{"MSFT_Partition.Resize partB [Size:21474836480]"}},
		{"the largest size is not told", 0, supports(nil), errAny, []string{"MSFT_Partition.GetSupportedSize partB"}},
		{"the largest size is none", 0, supports("-5"), errAny, []string{"MSFT_Partition.GetSupportedSize partB"}},
		{"the largest size cannot be", 0, supports("18446744073709551615"), errAny, []string{"MSFT_Partition.GetSupportedSize partB"}},
		{"the largest size is refused", 0, func(f *fakeWMI) { f.says("MSFT_Partition.GetSupportedSize", 1) }, errUnsupported, []string{"MSFT_Partition.GetSupportedSize partB"}},
		{"the largest size is refused, and the disk says nothing", 0, func(f *fakeWMI) { f.says("MSFT_Partition.GetSupportedSize", 4) }, errAny, []string{"MSFT_Partition.GetSupportedSize partB"}},
		{"the present size is not told", 20 * gib, func(f *fakeWMI) { f.set("partB", "Size", nil) }, errAny, nil},
		{"it is on two partitions", 20 * gib, func(f *fakeWMI) {
			f.related["volB>MSFT_Partition"] = append(f.related["volB>MSFT_Partition"], f.related["volA>MSFT_Partition"]...)
		}, errAny, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v, f := newVolumes(t)
			supports("32212254720")(f)
			if test.spoil != nil {
				test.spoil(f)
			}
			err := v.ResizeVolume(t.Context(), volumeB, test.size, handler.Permits{})
			if errors.Is(test.kind, errAny) && err != nil {
				err = errAny
			}
			wants(t, err, test.kind)
			f.wantCalls(test.calls...)
		})
	}
}

var errAny = errors.New("any error")

func supports(size any) func(*fakeWMI) {
	return func(f *fakeWMI) {
		f.answers["MSFT_Partition.GetSupportedSize"] = func() answer { return answer{out: properties{"SizeMin": "1", "SizeMax": size}} }
	}
}
