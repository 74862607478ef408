package fakehost

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

var (
	nothing = handler.Permits{}
	always  = handler.Permits{SystemDisk: true, Reformat: true}
)

func TestDisksRefuse(t *testing.T) {
	ctx := t.Context()
	tests := []struct {
		name string
		do   func(w world) error
		want error
	}{
		{"partitioning an unknown disk", func(w world) error { return w.PartitionDisk(ctx, 99, always) }, fs.ErrNotExist},
		{"partitioning the system's disk", func(w world) error { return w.PartitionDisk(ctx, 0, nothing) }, fs.ErrPermission},
		{"partitioning it with another permit", func(w world) error { return w.PartitionDisk(ctx, 0, handler.Permits{Reformat: true}) }, fs.ErrPermission},
		{"size of an unknown disk", func(w world) error { _, err := w.DiskSize(ctx, 99); return err }, fs.ErrNotExist},
		{"state of an unknown disk", func(w world) error { _, err := w.IsDiskOnline(ctx, 99); return err }, fs.ErrNotExist},
		{"taking an unknown disk offline", func(w world) error { return w.SetDiskOnline(ctx, 99, false, always) }, fs.ErrNotExist},
		{"taking the system's disk offline", func(w world) error { return w.SetDiskOnline(ctx, 0, false, nothing) }, fs.ErrPermission},
		{"leaving the system's disk online", func(w world) error { return w.SetDiskOnline(ctx, 0, true, nothing) }, fs.ErrPermission},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			if err := tt.do(w); !errors.Is(err, tt.want) {
				t.Fatalf("error = %v, want %v", err, tt.want)
			}
			for _, e := range w.Ledger() {
				if e.Changed {
					t.Errorf("it changed the host: %+v", e)
				}
			}
		})
	}
}

func TestUnknownDisksAreReportedInTheOldWords(t *testing.T) {
	_, err := newWorld(t, nil).DiskSize(t.Context(), 99)
	if err == nil || err.Error() != "failed to query disk 99. error: not found" {
		t.Errorf("error = %v", err)
	}
}

func TestARawDiskBecomesAVolumeOnce(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	for range 2 {
		w.must(w.PartitionDisk(ctx, RawDisk, nothing))
	}
	online, err := w.IsDiskOnline(ctx, RawDisk)
	w.must(err)
	ids, err := w.ListVolumesOnDisk(ctx, RawDisk, 0)
	w.must(err)
	if diff := cmp.Diff([]handler.VolumeID{NewVolume(RawDisk)}, ids); diff != "" || !online {
		t.Fatalf("online %v, volumes (-want +got):\n%s", online, diff)
	}
	w.must(w.FormatVolume(ctx, NewVolume(RawDisk), nothing))
	w.must(w.MountVolume(ctx, NewVolume(RawDisk), w.path("dir"), nothing))
	w.must(w.PlantFile(w.path(`dir\x`)))
	var changed []bool
	for _, e := range w.Ledger() {
		if e.Op == "PartitionDisk" {
			changed = append(changed, e.Changed)
		}
	}
	if diff := cmp.Diff([]bool{true, false}, changed); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestVolumesOfAnOfflineDiskAreNotSeen(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	w.must(w.PlantFile(w.path(`mount\x`)))
	w.must(w.SetDiskOnline(ctx, 1, false, nothing))
	w.must(w.SetDiskOnline(ctx, 1, false, nothing))
	if ids, err := w.ListVolumesOnDisk(ctx, 1, 0); len(ids) != 0 || err != nil {
		t.Errorf("volumes = %v, %v", ids, err)
	}
	if _, err := w.GetVolumeStats(ctx, FormattedVolume); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stats: %v", err)
	}
	if w.exists(`mount\x`) {
		t.Error("what is on it is seen")
	}
	w.must(w.SetDiskOnline(ctx, 1, true, nothing))
	if !w.exists(`mount\x`) {
		t.Error("it did not come back")
	}
}

func TestPermitsAllowWhatTheyName(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	w.must(w.PartitionDisk(ctx, 0, always))
	w.must(w.FormatVolume(ctx, FormattedVolume, handler.Permits{Reformat: true}))
	if err := w.FormatVolume(ctx, SystemVolume, handler.Permits{Reformat: true}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("reformat of the system's volume: %v", err)
	}
	if err := w.FormatVolume(ctx, SystemVolume, handler.Permits{SystemDisk: true}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("format of the system's volume: %v", err)
	}
	w.must(w.SetDiskOnline(ctx, 0, false, always))
	if online, err := w.IsDiskOnline(ctx, 0); online || err != nil {
		t.Errorf("online = %v, %v", online, err)
	}
}

func TestDisksAreDescribed(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	locations, err := w.ListDiskLocations(ctx)
	w.must(err)
	if diff := cmp.Diff(map[uint32]handler.DiskLocation{0: diskLocation(0), 1: diskLocation(1), 2: diskLocation(2)}, locations); diff != "" {
		t.Errorf("locations (-want +got):\n%s", diff)
	}
	ids, err := w.ListDiskIDs(ctx)
	w.must(err)
	if len(ids) != 4 || ids[1] != diskIDs(1) || ids[RawDisk].Page83 != "" {
		t.Errorf("ids = %v", ids)
	}
	for disk, want := range map[uint32]int64{0: 100 * gib, 1: 20 * gib, 2: 5 * gib, RawDisk: 8 * gib} {
		if size, err := w.DiskSize(ctx, disk); size != want || err != nil {
			t.Errorf("disk %d has %d bytes, %v", disk, size, err)
		}
	}
	w.must(w.Rescan(ctx))
}
