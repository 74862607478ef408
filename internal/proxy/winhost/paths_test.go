//go:build linux

package winhost

import (
	"context"
	"io/fs"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// everyPath are the operations that take a path, each on one path.
func everyPath(t *testing.T) (map[string]func(context.Context, safepath.Path) error, *ground) {
	t.Helper()
	v, f, g := newMounts(t)
	f.set("volC", "UniqueId", string(volumeC))
	files := &Filesystem{g.places(), func(context.Context, string) (bool, error) { return true, nil }, fakeMounts{g}}
	s, _, _ := newShares(t)
	s.places = g.places()
	return map[string]func(context.Context, safepath.Path) error{
		"PathExists":    func(ctx context.Context, p safepath.Path) error { _, err := files.PathExists(ctx, p); return err },
		"Mkdir":         files.Mkdir,
		"Rmdir":         func(ctx context.Context, p safepath.Path) error { return files.Rmdir(ctx, p, true) },
		"RmdirContents": files.RmdirContents,
		"CreateSymlink at it": func(ctx context.Context, p safepath.Path) error {
			return files.CreateSymlink(ctx, g.path(`C:\work\dir`), p)
		},
		"CreateSymlink to it": func(ctx context.Context, p safepath.Path) error {
			return files.CreateSymlink(ctx, p, g.path(`C:\work\new`))
		},
		"IsSymlink":     func(ctx context.Context, p safepath.Path) error { _, err := files.IsSymlink(ctx, p); return err },
		"MountVolume":   func(ctx context.Context, p safepath.Path) error { return v.MountVolume(ctx, volumeA, p, permitted) },
		"UnmountVolume": func(ctx context.Context, p safepath.Path) error { return v.UnmountVolume(ctx, volumeA, p) },
		"GetVolumeIDFromTargetPath": func(ctx context.Context, p safepath.Path) error {
			_, err := v.VolumeIDFromTargetPath(ctx, p)
			return err
		},
		"GetClosestVolumeIDFromTargetPath": func(ctx context.Context, p safepath.Path) error {
			_, err := v.ClosestVolumeIDFromTargetPath(ctx, p)
			return err
		},
		"NewSmbGlobalMapping": func(ctx context.Context, p safepath.Path) error {
			m := mapping(t, g, `\\server\share`, "", "user", "pw")
			m.Local = p
			return s.NewSMBGlobalMapping(ctx, m)
		},
	}, g
}

func TestNoPathOfOtherWorkingDirectoriesIsActedOn(t *testing.T) {
	others, err := safepath.NewRoots(`C:\outside`)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := others.Check(`C:\outside\x`)
	if err != nil {
		t.Fatal(err)
	}
	operations, g := everyPath(t)
	g.mkdir("C/outside/x")
	before := list(t, g.base)
	for name, act := range operations {
		if err := act(t.Context(), foreign); err == nil {
			t.Errorf("%s took it", name)
		}
		if err := act(ended(t), g.path(`C:\work\dir`)); err == nil {
			t.Errorf("%s was done for an ended context", name)
		}
		if name != "NewSmbGlobalMapping" { // without a path it makes no link
			if err := act(t.Context(), safepath.Path{}); err == nil {
				t.Errorf("%s took a path that nobody checked", name)
			}
		}
	}
	unchangedDisk(t, g, before)
}

func TestNoOperationOfTheHostGoesThroughALink(t *testing.T) {
	operations, g := everyPath(t)
	g.link("C/work/out", g.base+"/C/outside")
	g.mkdir("C/outside/sub")
	before := list(t, g.base)
	for name, act := range operations {
		t.Run(name, func(t *testing.T) {
			wants(t, act(t.Context(), g.path(`C:\work\out\sub`)), fs.ErrPermission)
			unchangedDisk(t, g, before)
		})
	}
}
