//go:build linux

package winhost

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

func newMounts(t *testing.T) (volumes, *fakeWMI, *ground) {
	t.Helper()
	v, f := newVolumes(t)
	g := newGround(t)
	g.mkdir("C/work/mount-a")
	g.mkdir("C/work/dir/mount-a")
	v.places, v.mounts = g.places(), fakeMounts{g}
	return v, f, g
}

func TestAVolumeIsMountedAndUnmountedTwice(t *testing.T) {
	v, f, g := newMounts(t)
	target := g.path(`C:\work\dir\mount-a`)
	for range 2 { // the second time the wanted state holds
		wants(t, v.MountVolume(t.Context(), volumeA, target, handler.Permits{}), nil)
		if on := g.at(`C:\work\dir\mount-a`); on != string(volumeA) {
			t.Errorf("there is %s", on)
		}
	}
	f.wantCalls()
	for range 2 {
		wants(t, v.UnmountVolume(t.Context(), volumeA, target), nil)
		if on := g.at(`C:\work\dir\mount-a`); on != "directory" {
			t.Errorf("there is %s", on)
		}
	}
	f.wantCalls("MSFT_Volume.Flush volA")
}

func TestMountVolumeRefusesPlacesThatAreNoEmptyDirectory(t *testing.T) {
	tests := map[string]struct {
		kind  error
		plant func(g *ground)
	}{
		`C:\work`:              {fs.ErrPermission, nil},
		`C:\work\nothing`:      {fs.ErrNotExist, nil},
		`C:\work\nothing\x`:    {fs.ErrNotExist, nil},
		`C:\work\file`:         {handler.ErrPrecondition, func(g *ground) { g.write("C/work/file") }},
		`C:\work\file\x`:       {errNotDir, func(g *ground) { g.write("C/work/file") }},
		`C:\work\link`:         {handler.ErrPrecondition, func(g *ground) { g.link("C/work/link", `C:\outside`) }},
		`C:\work\link\mount-x`: {fs.ErrPermission, func(g *ground) { g.link("C/work/link", g.base+"/C/outside"); g.mkdir("C/outside/mount-x") }},
		`C:\work\mount-j`:      {handler.ErrPrecondition, func(g *ground) { g.link("C/work/mount-j", `C:\outside`) }},
		`C:\work\mount-j\x`:    {fs.ErrPermission, func(g *ground) { g.link("C/work/mount-j", g.base+"/C/outside"); g.mkdir("C/outside/x") }},
		`C:\work\full`:         {fs.ErrExist, func(g *ground) { g.mkdir("C/work/full/x") }},
		`C:\work\mount-b`:      {fs.ErrExist, func(g *ground) { g.link("C/work/mount-b", string(volumeB)) }},
	}
	for path, test := range tests {
		t.Run(path, func(t *testing.T) {
			v, _, g := newMounts(t)
			if test.plant != nil {
				test.plant(g)
			}
			before := list(t, g.base)
			err := v.MountVolume(t.Context(), volumeA, g.path(path), handler.Permits{})
			wants(t, err, test.kind, "mount at "+path)
			unchangedDisk(t, g, before)
		})
	}
}

func unchangedDisk(t *testing.T, g *ground, before []string) {
	t.Helper()
	after := list(t, g.base)
	if len(before) != len(after) {
		t.Errorf("the disk changed from %v to %v", before, after)
		return
	}
	for i := range before {
		if before[i] != after[i] {
			t.Errorf("the disk changed: %s became %s", before[i], after[i])
		}
	}
}

func TestMountVolumeRefusesVolumes(t *testing.T) {
	v, f, g := newMounts(t)
	target := g.path(`C:\work\mount-a`)
	wants(t, v.MountVolume(t.Context(), volumeC, target, handler.Permits{}), fs.ErrPermission, "runs from")
	wants(t, v.MountVolume(t.Context(), volumeC, target, handler.Permits{Reformat: true}), fs.ErrPermission)
	wants(t, v.MountVolume(t.Context(), volumeX, target, handler.Permits{}), fs.ErrNotExist)
	wants(t, v.MountVolume(ended(t), volumeA, target, handler.Permits{}), context.Canceled)
	f.set("disk1", "IsBoot", nil)
	wants(t, v.MountVolume(t.Context(), volumeA, target, handler.Permits{}), fs.ErrPermission)
	if on := g.at(`C:\work\mount-a`); on != "directory" {
		t.Errorf("there is %s", on)
	}
	wants(t, v.MountVolume(t.Context(), volumeC, target, permitted), nil)
}

// swap leads the parent of what the mount manager acts on elsewhere, as somebody could who may write there.
func swap(g *ground) func(string) {
	return func(string) {
		if g.rename(`C:\work\dir`, `C:\work\aside`) {
			g.link("C/work/dir", g.real(`C:\outside`))
		}
		g.during = nil
	}
}

// back undoes swap, so that a look afterwards shows nothing.
func back(g *ground) func(string) {
	return func(string) {
		g.after = nil
		if g.at(`C:\work\dir`) == "directory" {
			return // swap was refused
		}
		if err := os.Remove(g.real(`C:\work\dir`)); err != nil {
			g.t.Error(err)
		}
		g.rename(`C:\work\aside`, `C:\work\dir`)
	}
}

func TestAMountThatWasLedElsewhereIsUndone(t *testing.T) {
	v, _, g := newMounts(t)
	g.holds = nil
	g.mkdir("C/outside/mount-a")
	g.during = swap(g)
	err := v.MountVolume(t.Context(), volumeA, g.path(`C:\work\dir\mount-a`), handler.Permits{})
	wants(t, err, fs.ErrPermission, "made elsewhere")
	for _, place := range []string{`C:\outside\mount-a`, `C:\work\aside\mount-a`} {
		if on := g.at(place); on != "directory" {
			t.Errorf("at %s there is %s", place, on)
		}
	}
}

func TestAMountThatFailsIsTheFunctionsError(t *testing.T) {
	v, _, g := newMounts(t)
	g.fails = failedAs("SetVolumeMountPointW", `C:\work\mount-a`, errorDirNotEmpty)
	err := v.MountVolume(t.Context(), volumeA, g.path(`C:\work\mount-a`), handler.Permits{})
	wants(t, err, fs.ErrExist, "SetVolumeMountPointW failed", "code=145")
	// Somebody else mounted it there in between.
	g.fails, g.during = nil, func(string) {
		wants(t, fakeMounts{&ground{t: t, base: g.base}}.Set(`C:\work\mount-a`, volumeA), nil)
		g.fails = failedAs("SetVolumeMountPointW", `C:\work\mount-a`, errorDirNotEmpty)
	}
	v.mounts = failsAfter{fakeMounts{g}}
	wants(t, v.MountVolume(t.Context(), volumeA, g.path(`C:\work\mount-a`), handler.Permits{}), nil)
}

// failsAfter lets others act, and then fails.
type failsAfter struct{ fakeMounts }

func (m failsAfter) Set(path string, _ handler.VolumeID) error {
	m.during(path)
	return m.fails
}

func TestUnmountVolumeLeavesWhatIsNotTheVolumes(t *testing.T) {
	tests := []struct {
		name, path string
		kind       error
		plant      func(g *ground)
	}{
		{"another volume", `C:\work\mount-b`, handler.ErrPrecondition, func(g *ground) { g.link("C/work/mount-b", string(volumeB)) }},
		{"a working directory", `C:\work`, fs.ErrPermission, nil},
		{"what is beneath a link", `C:\work\link\mount-x`, fs.ErrPermission, func(g *ground) {
			g.link("C/work/link", g.base+"/C/outside")
			g.link("C/outside/mount-x", string(volumeA))
		}},
		{"nothing", `C:\work\nothing`, nil, nil},
		{"nothing in nothing", `C:\work\nothing\x`, nil, nil},
		{"what is beneath a file", `C:\work\file\x`, nil, func(g *ground) { g.write("C/work/file") }},
		{"a directory", `C:\work\dir`, nil, nil},
		{"a file", `C:\work\file`, nil, func(g *ground) { g.write("C/work/file") }},
		{"a link to the volume", `C:\work\link`, nil, func(g *ground) { g.link("C/work/link", string(volumeA)) }},
		{"a junction", `C:\work\mount-j`, nil, func(g *ground) { g.link("C/work/mount-j", `C:\outside`) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v, f, g := newMounts(t)
			if test.plant != nil {
				test.plant(g)
			}
			before := list(t, g.base)
			wants(t, v.UnmountVolume(t.Context(), volumeA, g.path(test.path)), test.kind)
			unchangedDisk(t, g, before)
			f.wantCalls()
		})
	}
}

func TestUnmountVolumeFlushesFirst(t *testing.T) {
	v, f, g := newMounts(t)
	target := g.path(`C:\work\mount-x`)
	g.link("C/work/mount-x", string(volumeA))
	for _, code := range []uint32{4, 8, 40004} { // 8 is "object not found", and no reason to go on
		f.says("MSFT_Volume.Flush", code)
		if err := v.UnmountVolume(t.Context(), volumeA, target); err == nil || g.at(`C:\work\mount-x`) != string(volumeA) {
			t.Errorf("code %d: %v, and there is %s", code, err, g.at(`C:\work\mount-x`))
		}
	}
	delete(f.answers, "MSFT_Volume.Flush")
	lost := errors.New("lost")
	f.fails["MSFT_Volume"] = lost
	wants(t, v.UnmountVolume(t.Context(), volumeA, target), lost)
	wants(t, v.UnmountVolume(ended(t), volumeA, target), context.Canceled)
	g.fails = failedAs("DeleteVolumeMountPointW", `C:\work\mount-x`, 2)
	delete(f.fails, "MSFT_Volume")
	wants(t, v.UnmountVolume(t.Context(), volumeA, target), fs.ErrNotExist, "code=2") // and no success
	g.fails = nil
	if on := g.at(`C:\work\mount-x`); on != string(volumeA) {
		t.Fatalf("there is %s", on)
	}
	wants(t, v.UnmountVolume(t.Context(), volumeA, target), nil)
}

func TestAVolumeThatIsGoneIsUnmounted(t *testing.T) {
	for name, manager := range map[string]func(*ground) mounts{
		"the mount manager knows it":  func(g *ground) mounts { return fakeMounts{g} },
		"the mount manager does not":  func(g *ground) mounts { return knowsNothing{fakeMounts{g}} },
		"by path it is another place": func(g *ground) mounts { return knowsAnother{fakeMounts{g}} },
	} {
		t.Run(name, func(t *testing.T) {
			v, f, g := newMounts(t)
			v.mounts = manager(g)
			g.link("C/work/mount-x", string(volumeX))
			wants(t, v.UnmountVolume(t.Context(), volumeX, g.path(`C:\work\mount-x`)), nil)
			if on := g.at(`C:\work\mount-x`); on != "directory" {
				t.Errorf("there is %s", on)
			}
			f.wantCalls()
		})
	}
}

// knowsNothing is a mount manager without the volume.
type knowsNothing struct{ fakeMounts }

func (m knowsNothing) At(path string) (handler.VolumeID, error) {
	return "", failedAs("GetVolumeNameForVolumeMountPointW", path, 2)
}

func (m knowsNothing) Delete(path string) error {
	m.t.Errorf("asked to act on %s", path)
	return nil
}

// knowsAnother is led elsewhere by path.
type knowsAnother struct{ fakeMounts }

func (knowsAnother) At(string) (handler.VolumeID, error) { return volumeB, nil }

func (m knowsAnother) Delete(path string) error {
	m.t.Errorf("asked to act on %s", path)
	return nil
}

func TestAnUnmountThatIsLedElsewhereIsRefused(t *testing.T) {
	v, f, g := newMounts(t)
	if err := os.Remove(g.real(`C:\work\dir\mount-a`)); err != nil {
		t.Fatal(err)
	}
	g.link("C/work/dir/mount-a", string(volumeA))
	g.link("C/outside/mount-a", string(volumeB))
	f.answers["MSFT_Volume.Flush"] = func() answer { swap(g)(""); return answer{} }
	wants(t, v.UnmountVolume(t.Context(), volumeA, g.path(`C:\work\dir\mount-a`)), fs.ErrPermission)
	if on := g.at(`C:\outside\mount-a`); on != string(volumeB) {
		t.Errorf("outside there is %s", on)
	}
}
