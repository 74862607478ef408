package fakehost

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

const unknownVolume handler.VolumeID = `\\?\Volume{ffffffff-0000-4000-8000-000000000000}\`

func TestVolumeRefuses(t *testing.T) {
	tests := []struct {
		name string
		do   func(w world) error
		want error
	}{
		{"mounting an unknown volume", func(w world) error {
			return w.MountVolume(t.Context(), unknownVolume, w.path("dir"), handler.Permits{})
		}, fs.ErrNotExist},
		{"mounting at a path that is not there", func(w world) error {
			return w.MountVolume(t.Context(), FormattedVolume, w.path("none"), handler.Permits{})
		}, fs.ErrNotExist},
		{"mounting over something", func(w world) error {
			return w.MountVolume(t.Context(), FormattedVolume, w.path("full"), handler.Permits{})
		}, fs.ErrExist},
		{"mounting over another volume", func(w world) error {
			return w.MountVolume(t.Context(), FormattedVolume, w.path("raw"), handler.Permits{})
		}, fs.ErrExist},
		{"mounting at a link", func(w world) error {
			return w.MountVolume(t.Context(), FormattedVolume, w.path("link"), handler.Permits{})
		}, handler.ErrPrecondition},
		{"mounting at a file", func(w world) error {
			return w.MountVolume(t.Context(), FormattedVolume, w.path(`full\file`), handler.Permits{})
		}, handler.ErrPrecondition},
		{"mounting at the working directory", func(w world) error { return w.MountVolume(t.Context(), FormattedVolume, w.path(""), handler.Permits{}) }, fs.ErrPermission},
		{"mounting the system's volume", func(w world) error { return w.MountVolume(t.Context(), SystemVolume, w.path("dir"), handler.Permits{}) }, fs.ErrPermission},
		{"unmounting an unknown volume", func(w world) error { return w.UnmountVolume(t.Context(), unknownVolume, w.path("mount")) }, handler.ErrPrecondition},
		{"unmounting another volume than is there", func(w world) error { return w.UnmountVolume(t.Context(), UnformattedVolume, w.path("mount")) }, handler.ErrPrecondition},
		{"formatting an unknown volume", func(w world) error { return w.FormatVolume(t.Context(), unknownVolume, handler.Permits{}) }, fs.ErrNotExist},
		{"formatting a formatted volume", func(w world) error { return w.FormatVolume(t.Context(), FormattedVolume, handler.Permits{}) }, fs.ErrExist},
		{"formatting the system's volume", func(w world) error { return w.FormatVolume(t.Context(), SystemVolume, handler.Permits{}) }, fs.ErrPermission},
		{"resizing an unknown volume", func(w world) error { return w.ResizeVolume(t.Context(), unknownVolume, 1, handler.Permits{}) }, fs.ErrNotExist},
		{"resizing the system's volume", func(w world) error { return w.ResizeVolume(t.Context(), SystemVolume, 0, handler.Permits{}) }, fs.ErrPermission},
		{"resizing to less than nothing", func(w world) error { return w.ResizeVolume(t.Context(), FormattedVolume, -1, handler.Permits{}) }, fs.ErrInvalid},
		{"resizing beyond the disk", func(w world) error { return w.ResizeVolume(t.Context(), FormattedVolume, 21*gib, handler.Permits{}) }, handler.ErrPrecondition},
		{"sizes of an unknown volume", func(w world) error { _, err := w.GetVolumeStats(t.Context(), unknownVolume); return err }, fs.ErrNotExist},
		{"state of an unknown volume", func(w world) error { _, err := w.IsVolumeFormatted(t.Context(), unknownVolume); return err }, fs.ErrNotExist},
		{"disk of an unknown volume", func(w world) error { _, err := w.DiskNumber(t.Context(), unknownVolume); return err }, fs.ErrNotExist},
		{"flushing an unknown volume", func(w world) error { return w.WriteVolumeCache(t.Context(), unknownVolume) }, fs.ErrNotExist},
		{"the volume at a plain directory", func(w world) error { _, err := w.VolumeIDFromTargetPath(t.Context(), w.path("dir")); return err }, handler.ErrPrecondition},
		{"the volume at a link to a mount point", func(w world) error {
			w.must(w.CreateSymlink(t.Context(), w.path("mount"), w.path("tomount")))
			_, err := w.VolumeIDFromTargetPath(t.Context(), w.path("tomount"))
			return err
		}, handler.ErrPrecondition},
		{"the volume at a path that is not there", func(w world) error { _, err := w.VolumeIDFromTargetPath(t.Context(), w.path("none")); return err }, fs.ErrNotExist},
		{"the closest volume of a path that is not there", func(w world) error {
			_, err := w.ClosestVolumeIDFromTargetPath(t.Context(), w.path("none"))
			return err
		}, fs.ErrNotExist},
		{"the closest volume behind a link that leads out", func(w world) error {
			_, err := w.ClosestVolumeIDFromTargetPath(t.Context(), w.path("out"))
			return err
		}, fs.ErrPermission},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			if err := tt.do(w); !errors.Is(err, tt.want) {
				t.Fatalf("error = %v, want %v", err, tt.want)
			}
			if id, err := w.VolumeIDFromTargetPath(t.Context(), w.path("mount")); id != FormattedVolume || err != nil {
				t.Errorf("mount shows %s, %v", id, err)
			}
			if stats, err := w.GetVolumeStats(t.Context(), FormattedVolume); stats.Total != 10*gib || err != nil {
				t.Errorf("stats = %+v, %v", stats, err)
			}
		})
	}
}

func TestMountAndUnmountMayBeRepeated(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	w.must(w.MountVolume(ctx, FormattedVolume, w.path("MOUNT"), handler.Permits{})) // is there already
	w.must(w.MountVolume(ctx, FormattedVolume, w.path("dir"), handler.Permits{}))   // a second mount point
	w.must(w.PlantFile(w.path(`dir\x`)))
	if !w.exists(`mount\x`) {
		t.Error("two mount points of one volume show different things")
	}
	w.must(w.UnmountVolume(ctx, FormattedVolume, w.path("dir")))
	w.must(w.UnmountVolume(ctx, FormattedVolume, w.path("dir")))
	w.must(w.UnmountVolume(ctx, FormattedVolume, w.path(`none\at\all`)))
	if w.exists(`dir\x`) || !w.exists(`mount\x`) {
		t.Error("the volume is seen where it was unmounted, or not where it is mounted")
	}
	var changed []bool
	for _, e := range w.Ledger() {
		if e.Op == "MountVolume" || e.Op == "UnmountVolume" {
			changed = append(changed, e.Changed)
		}
	}
	if diff := cmp.Diff([]bool{false, true, true, false, false}, changed); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestResizeLeavesLessThan100MiBAlone(t *testing.T) {
	tests := []struct {
		name string
		to   int64
		want int64
	}{
		{"smaller than it is", 1, 10 * gib},
		{"as large as it is", 10 * gib, 10 * gib},
		{"one byte less than 100 MiB more", 10*gib + 100*mib - 1, 10 * gib},
		{"100 MiB more", 10*gib + 100*mib, 10*gib + 100*mib},
		{"as large as the disk allows", 20 * gib, 20 * gib},
		{"as far as it goes", 0, 20 * gib},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.must(w.ResizeVolume(t.Context(), FormattedVolume, tt.to, handler.Permits{}))
			got, err := w.GetVolumeStats(t.Context(), FormattedVolume)
			w.must(err)
			if diff := cmp.Diff(handler.VolumeStats{Total: tt.want, Used: 50 * mib}, got); diff != "" {
				t.Errorf("stats (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFormatGivesAVolumeItsFileSystemOnce(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	if is, err := w.IsVolumeFormatted(ctx, UnformattedVolume); is || err != nil {
		t.Fatalf("IsVolumeFormatted = %v, %v", is, err)
	}
	w.must(w.FormatVolume(ctx, UnformattedVolume, handler.Permits{}))
	w.must(w.PlantFile(w.path(`raw\x`)))
	if err := w.FormatVolume(ctx, UnformattedVolume, handler.Permits{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second FormatVolume: %v", err)
	}
	if !w.exists(`raw\x`) {
		t.Error("the second FormatVolume took what was on the volume")
	}
}

func TestVolumesAreFoundByDiskAndPath(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	lists := []struct {
		disk, partition uint32
		want            []handler.VolumeID
	}{
		{0, 0, []handler.VolumeID{SystemVolume}}, {1, 0, []handler.VolumeID{FormattedVolume}}, {1, 1, []handler.VolumeID{FormattedVolume}},
		{1, 2, []handler.VolumeID{}}, {9, 0, []handler.VolumeID{}},
	}
	for _, tt := range lists {
		got, err := w.ListVolumesOnDisk(ctx, tt.disk, tt.partition)
		w.must(err)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("disk %d partition %d (-want +got):\n%s", tt.disk, tt.partition, diff)
		}
	}
	w.must(w.PlantFile(w.path(`mount\a\b`)))
	w.must(w.CreateSymlink(ctx, w.path(`mount\a`), w.path("into")))
	for path, want := range map[string]handler.VolumeID{
		"": SystemVolume, `full\sub`: SystemVolume, "mount": FormattedVolume, `mount\a\b`: FormattedVolume, `into\b`: FormattedVolume, "into": FormattedVolume,
	} {
		if got, err := w.ClosestVolumeIDFromTargetPath(ctx, w.path(path)); got != want || err != nil {
			t.Errorf("closest volume of %q = %s, %v, want %s", path, got, err, want)
		}
	}
	if disk, err := w.DiskNumber(ctx, UnformattedVolume); disk != 2 || err != nil {
		t.Errorf("DiskNumber = %d, %v", disk, err)
	}
	w.must(w.WriteVolumeCache(ctx, SystemVolume))
}
