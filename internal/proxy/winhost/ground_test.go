//go:build linux

package winhost

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// ground is a node's disk on real directories of this system. C:\work and D:\more are working directories; the roots of
// mounted volumes are beside them. A link's text is the one that Windows has, so that this kernel cannot follow it.
// A name that begins with mount- becomes a mount point when a volume is mounted on it.
type ground struct {
	t      *testing.T
	base   string
	roots  *safepath.Roots
	during func(path string) // what somebody else does just before the mount manager acts
	after  func(path string) // and just after
	holds  map[uint64]int    // how often a directory is held, by its inode; nil if this system holds none
	fails  error             // of the mount manager
	named  string            // what directories say of their volume
	opened []string          // the paths that were opened by text
}

func newGround(t *testing.T) *ground {
	t.Helper()
	roots, err := safepath.NewRoots(`C:\work`, `D:\more`)
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{t: t, base: t.TempDir(), roots: roots, holds: map[uint64]int{}}
	g.mkdir("C/work")
	g.mkdir("D/more")
	g.mkdir("C/outside")
	return g
}

func (g *ground) mkdir(rel string) {
	g.t.Helper()
	if err := os.MkdirAll(filepath.Join(g.base, rel), 0o755); err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground) write(rel string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.base, rel), nil, 0o600); err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground) link(rel, text string) {
	g.t.Helper()
	if err := os.Symlink(text, filepath.Join(g.base, rel)); err != nil {
		g.t.Fatal(err)
	}
}

// real is where a Windows path lies here.
func (g *ground) real(path string) string {
	if id, isVolume := volumeIn(path); isVolume {
		return filepath.Join(g.base, "volumes", string(id)[11:47])
	}
	return filepath.Join(g.base, path[:1], filepath.FromSlash(strings.ReplaceAll(path[3:], `\`, "/")))
}

func (g *ground) open(path string) (dir, error) {
	g.opened = append(g.opened, path)
	d, err := openUnix(g.real(path))
	return onVolume{d, g.named, g}, err
}

// rename is what another process does to a directory. Windows refuses it for one that is held.
func (g *ground) rename(from, to string) bool {
	g.t.Helper()
	info, err := os.Lstat(g.real(from))
	if err != nil {
		g.t.Fatal(err)
	}
	if g.holds[info.Sys().(*syscall.Stat_t).Ino] > 0 {
		return false
	}
	if err := os.Rename(g.real(from), g.real(to)); err != nil {
		g.t.Fatal(err)
	}
	return true
}

// hold is a directory that stays where it is.
type hold struct {
	g     *ground
	inode uint64
}

func (h hold) Close() error {
	if h.g.holds[h.inode]--; h.g.holds[h.inode] == 0 {
		delete(h.g.holds, h.inode)
	}
	return nil
}

func (g *ground) places() places { return places{g.roots, g.open} }

// path is one in a request.
func (g *ground) path(text string) safepath.Path {
	g.t.Helper()
	path, err := g.roots.Check(text)
	if err != nil {
		g.t.Fatal(err)
	}
	return path
}

// onVolume is a directory that says what volume it is on.
type onVolume struct {
	dir
	name string
	g    *ground
}

func (d onVolume) Hold() (io.Closer, error) {
	if d.g.holds == nil {
		return d.dir.Hold()
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(d.dir.(unixDir)), &stat); err != nil {
		return nil, err
	}
	d.g.holds[stat.Ino]++
	return hold{d.g, stat.Ino}, nil
}

func (d onVolume) Open(name string) (dir, error) {
	next, err := d.dir.Open(name)
	return onVolume{next, d.name, d.g}, err
}

func (d onVolume) Volume() (string, error) { return d.name, nil }

// fakeMounts does with links on this kernel what the mount manager does, and like it follows whatever is in the path.
type fakeMounts struct{ *ground }

func (m fakeMounts) Set(path string, id handler.VolumeID) error {
	if err := m.act(path); err != nil {
		return err
	}
	place := m.real(path)
	return errors.Join(os.Remove(place), os.Symlink(string(id), place), m.done(path))
}

func (m fakeMounts) Delete(path string) error {
	if err := m.act(path); err != nil {
		return err
	}
	place := m.real(path)
	return errors.Join(os.Remove(place), os.Mkdir(place, 0o755), m.done(path))
}

func (m fakeMounts) done(path string) error {
	if m.after != nil {
		m.after(path)
	}
	return nil
}

func (m fakeMounts) act(path string) error {
	if m.fails != nil {
		return m.fails
	}
	if m.during != nil {
		m.during(path)
	}
	return nil
}

// Paths looks for mount points everywhere, as the mount manager does, which has a list of them on each volume.
func (m fakeMounts) Paths(id handler.VolumeID) (found []string, err error) {
	if id == volumeX {
		return nil, failedAs("GetVolumePathNamesForVolumeNameW", string(id), 2)
	}
	err = filepath.WalkDir(m.base, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type() != fs.ModeSymlink || !strings.HasPrefix(entry.Name(), "mount-") {
			return err
		}
		text, err := os.Readlink(path)
		if rel, relErr := filepath.Rel(m.base, path); text == string(id) {
			found = append(found, strings.ReplaceAll(strings.Replace(rel, "/", `:/`, 1), "/", `\`)+`\`)
			err = errors.Join(err, relErr)
		}
		return err
	})
	return found, err
}

func (m fakeMounts) At(path string) (handler.VolumeID, error) {
	text, err := os.Readlink(m.real(path))
	if err != nil {
		return "", failedAs("GetVolumeNameForVolumeMountPointW", path, 4390)
	}
	return handler.ParseVolumeID(text)
}

func (g *ground) at(path string) string {
	g.t.Helper()
	info, err := os.Lstat(g.real(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "nothing"
	case err != nil:
		g.t.Fatal(err)
	case info.Mode().Type() == fs.ModeSymlink:
		text, err := os.Readlink(g.real(path))
		if err != nil {
			g.t.Fatal(err)
		}
		return text
	case info.IsDir():
		return "directory"
	}
	return "file"
}
