//go:build linux

package winhost

import (
	"io/fs"
	"os"
	"testing"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

func TestAParentThatIsSwappedAndSwappedBackLeavesNoVolumeMountedOutside(t *testing.T) {
	for _, isHeld := range []bool{true, false} {
		v, _, g := newMounts(t)
		g.mkdir("C/outside/mount-a")
		g.mkdir("C/elsewhere")
		g.link("C/elsewhere/mount-old", string(volumeA)) // an administrator's, which stays
		g.during, g.after = swap(g), back(g)
		var want error
		if !isHeld {
			g.holds, want = nil, fs.ErrPermission
		}
		wants(t, v.MountVolume(t.Context(), volumeA, g.path(`C:\work\dir\mount-a`), handler.Permits{}), want)
		here := map[bool]string{true: string(volumeA), false: "directory"}[isHeld]
		for place, want := range map[string]string{`C:\outside\mount-a`: "directory", `C:\work\dir\mount-a`: here, `C:\elsewhere\mount-old`: string(volumeA)} {
			if on := g.at(place); on != want {
				t.Errorf("held %t: at %s there is %s, want %s", isHeld, place, on, want)
			}
		}
	}
}

func TestAParentThatIsSwappedAndSwappedBackCostsNoOtherMountPoint(t *testing.T) {
	v, _, g := newMounts(t)
	if err := os.Remove(g.real(`C:\work\dir\mount-a`)); err != nil {
		t.Fatal(err)
	}
	g.link("C/work/dir/mount-a", string(volumeA))
	g.link("C/outside/mount-a", string(volumeB))
	g.during, g.after = swap(g), back(g)
	wants(t, v.UnmountVolume(t.Context(), volumeA, g.path(`C:\work\dir\mount-a`)), nil)
	for place, want := range map[string]string{`C:\outside\mount-a`: string(volumeB), `C:\work\dir\mount-a`: "directory"} {
		if on := g.at(place); on != want {
			t.Errorf("at %s there is %s, want %s", place, on, want)
		}
	}
}

func TestAnUnmountOfAnotherMountPointIsSaid(t *testing.T) {
	v, _, g := newMounts(t)
	if err := os.Remove(g.real(`C:\work\dir\mount-a`)); err != nil {
		t.Fatal(err)
	}
	g.link("C/work/dir/mount-a", string(volumeA))
	g.link("C/outside/mount-a", string(volumeB))
	g.holds, g.during, g.after = nil, swap(g), back(g)
	wants(t, v.UnmountVolume(t.Context(), volumeA, g.path(`C:\work\dir\mount-a`)), fs.ErrPermission, "another mount point was removed")
}

func TestEveryDirectoryOnTheWayIsHeldWhileTheMountManagerActsAndNoLonger(t *testing.T) {
	v, _, g := newMounts(t)
	g.mkdir("C/work/a/b/c/mount-d")
	target, asked := g.path(`C:\work\a\b\c\mount-d`), 0
	g.during = func(string) {
		for _, path := range []string{`C:\work`, `C:\work\a`, `C:\work\a\b`, `C:\work\a\b\c`} {
			if asked++; g.rename(path, `C:\aside`) {
				t.Errorf("%s could be renamed", path)
			}
		}
	}
	free := func() {
		t.Helper()
		if len(g.holds) > 0 {
			t.Errorf("%d directories are still held", len(g.holds))
		}
	}
	wants(t, v.MountVolume(t.Context(), volumeA, target, handler.Permits{}), nil)
	free()
	wants(t, v.UnmountVolume(t.Context(), volumeA, target), nil)
	free()
	if asked != 8 {
		t.Errorf("%d were tried", asked)
	}
	for _, path := range []string{`C:\work\a\b\nothing`, `C:\work\a\nothing\x`, `C:\work\a`} {
		if err := v.MountVolume(t.Context(), volumeA, g.path(path), handler.Permits{}); err == nil {
			t.Errorf("mounted at %s", path)
		}
		free()
	}
	g.fails = failedAs("SetVolumeMountPointW", "", 5)
	wants(t, v.MountVolume(t.Context(), volumeA, target, handler.Permits{}), fs.ErrPermission)
	free()
}

func TestNothingIsMountedIfTheSystemDoesNotSayWhereTheVolumeIs(t *testing.T) {
	v, _, g := newMounts(t)
	lost := failedAs("GetVolumePathNamesForVolumeNameW", "", 1167)
	v.mounts = tellsNothing{fakeMounts{g}, lost}
	err := v.MountVolume(t.Context(), volumeA, g.path(`C:\work\mount-a`), handler.Permits{})
	if on := g.at(`C:\work\mount-a`); err == nil || on != "directory" {
		t.Errorf("there is %s, %v", on, err)
	}
}

type tellsNothing struct {
	fakeMounts
	err error
}

func (m tellsNothing) Paths(handler.VolumeID) ([]string, error) { return nil, m.err }

func TestAVolumeThatShowsOnlyElsewhereIsSoughtOnVolumesWithoutALetter(t *testing.T) {
	v, _, _ := newMounts(t)
	for path, want := range map[string]struct {
		root  string
		names int
	}{
		`C:\`:                    {`C:\`, 0},
		`C:\a\`:                  {`C:\`, 1},
		`C:\a\b c\`:              {`C:\`, 2},
		string(volumeB):          {string(volumeB), 0},
		string(volumeB) + `x\y\`: {string(volumeB), 2},
	} {
		if tree, names := v.anywhere(path); tree.name != want.root || len(names) != want.names {
			t.Errorf("%s: %s, %q", path, tree.name, names)
		}
	}
}
