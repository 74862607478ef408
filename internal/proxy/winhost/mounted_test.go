//go:build linux

package winhost

import (
	"context"
	"io/fs"
	"testing"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// planted has a staged volume A with a volume B mounted in it, links to it, and links that lead nowhere good.
func planted(t *testing.T) (volumes, *fakeWMI, *ground) {
	t.Helper()
	v, f, g := newMounts(t)
	g.mkdir("volumes/00000000-0000-0000-0000-00000000000a/data/sub")
	g.mkdir("volumes/00000000-0000-0000-0000-00000000000b/deep")
	g.link("volumes/00000000-0000-0000-0000-00000000000a/mount-b", string(volumeB))
	g.link("volumes/00000000-0000-0000-0000-00000000000a/out", `C:\outside`)
	g.mkdir("C/work/plugins")
	g.link("C/work/plugins/mount-s", string(volumeA))
	g.link("C/work/pod", `C:\work\plugins\mount-s`)
	g.link("C/work/pod2", `C:\work\pod`)
	g.link("C/work/other", `D:\more`)
	g.link("C/work/volume", string(volumeA))
	g.link("C/work/out", `C:\outside`)
	g.link("C/work/loop", `C:\work\loop`)
	g.link("C/work/share", `\\server\share`)
	g.link("C/work/relative", `..\outside`)
	g.link("C/work/mount-j", `C:\work\plugins\mount-s`)
	g.write("C/work/file")
	return v, f, g
}

func TestVolumeIDFromTargetPath(t *testing.T) {
	v, _, g := planted(t)
	tests := []struct {
		path string
		want handler.VolumeID
		kind error
	}{
		{`C:\work\plugins\mount-s`, volumeA, nil},
		{`C:\work\pod`, volumeA, nil},
		{`C:\work\pod2`, volumeA, nil},
		{`C:\work\volume`, volumeA, nil},
		{`C:\work\mount-j`, volumeA, nil},
		{`C:\work`, "", handler.ErrPrecondition},
		{`C:\work\other`, "", handler.ErrPrecondition},
		{`C:\work\plugins`, "", handler.ErrPrecondition},
		{`C:\work\file`, "", handler.ErrPrecondition},
		{`C:\work\loop`, "", handler.ErrPrecondition},
		{`C:\work\nothing`, "", fs.ErrNotExist},
		{`C:\work\out`, "", fs.ErrPermission},
		{`C:\work\share`, "", fs.ErrPermission},
		{`C:\work\relative`, "", fs.ErrPermission},
		{`C:\work\pod\data`, "", fs.ErrPermission},
		{`C:\work\plugins\mount-s\mount-b`, "", fs.ErrPermission},
	}
	for _, test := range tests {
		got, err := v.VolumeIDFromTargetPath(t.Context(), g.path(test.path))
		if got != test.want {
			t.Errorf("%s: got %q", test.path, got)
		}
		wants(t, err, test.kind)
	}
	_, err := v.VolumeIDFromTargetPath(t.Context(), g.path(`C:\work\plugins`))
	wants(t, err, handler.ErrPrecondition, "not a mounted folder")
	_, err = v.VolumeIDFromTargetPath(ended(t), g.path(`C:\work\pod`))
	wants(t, err, context.Canceled)
}

func TestClosestVolumeIDFromTargetPath(t *testing.T) {
	v, _, g := planted(t)
	tests := []struct {
		path string
		want handler.VolumeID
		kind error
	}{
		{`C:\work`, volumeC, nil}, // by its drive
		{`C:\work\plugins`, volumeC, nil},
		{`C:\work\file`, volumeC, nil},
		{`D:\more`, volumeA, nil},
		{`C:\work\other`, volumeA, nil},
		{`C:\work\plugins\mount-s`, volumeA, nil},
		{`C:\work\pod2`, volumeA, nil},
		{`C:\work\volume`, volumeA, nil},
		{`C:\work\pod\mount-b`, volumeB, nil},
		{`C:\work\nothing`, "", fs.ErrNotExist},
		{`C:\work\plugins\mount-s\nothing`, "", fs.ErrNotExist},
		{`C:\work\nothing\x`, "", fs.ErrNotExist},
		{`C:\work\file\x`, "", errNotDir},
		{`C:\work\out`, "", fs.ErrPermission},
		{`C:\work\out\x`, "", fs.ErrPermission},
		{`C:\work\pod\out`, "", fs.ErrPermission},
		{`C:\work\share\x`, "", fs.ErrPermission},
		{`C:\work\relative`, "", fs.ErrPermission},
		{`C:\work\loop\x`, "", fs.ErrPermission},
	}
	for _, test := range tests {
		got, err := v.ClosestVolumeIDFromTargetPath(t.Context(), g.path(test.path))
		if got != test.want {
			t.Errorf("%s: got %q", test.path, got)
		}
		wants(t, err, test.kind)
	}
	_, err := v.ClosestVolumeIDFromTargetPath(ended(t), g.path(`C:\work`))
	wants(t, err, context.Canceled)
}

func TestTheClosestVolumeIsTheHandlesBeforeTheDrives(t *testing.T) {
	v, f, g := planted(t)
	g.named = string(volumeB)
	for _, path := range []string{`C:\work\plugins`, `C:\work\pod\data\sub`} {
		if got, err := v.ClosestVolumeIDFromTargetPath(t.Context(), g.path(path)); err != nil || got != volumeB {
			t.Errorf("%s: got %q, %v", path, got, err)
		}
	}
	g.named = ""
	_, err := v.ClosestVolumeIDFromTargetPath(t.Context(), g.path(`C:\work\pod\data\sub`))
	wants(t, err, handler.ErrPrecondition) // it is on no drive
	f.set("volC", "UniqueId", `\\?\GLOBALROOT\x`)
	if got, err := v.ClosestVolumeIDFromTargetPath(t.Context(), g.path(`C:\work`)); err == nil {
		t.Errorf("got %q", got)
	}
	f.related["partC>MSFT_Volume"] = nil
	_, err = v.ClosestVolumeIDFromTargetPath(t.Context(), g.path(`C:\work`))
	wants(t, err, fs.ErrNotExist, "the volume of drive C")
	f.classes["MSFT_Partition"] = nil
	_, err = v.ClosestVolumeIDFromTargetPath(t.Context(), g.path(`C:\work`))
	wants(t, err, fs.ErrNotExist, "the partition of drive C")
}
