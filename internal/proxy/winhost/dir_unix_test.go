//go:build linux

package winhost

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// unixDir is a dir on this kernel, so that the walk is tried on real directories and against real links.
// A "mount" cannot be made without privileges: a link whose name begins with "mount-" stands for one.
type unixDir int

func openUnix(path string) (dir, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return unixDir(fd), err
}

func (d unixDir) Close() error { return unix.Close(int(d)) }

func (d unixDir) Open(name string) (dir, error) {
	fd, err := unix.Openat(int(d), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP):
		entry, statErr := d.Stat(name)
		if statErr != nil {
			return nil, statErr
		}
		if entry.kind == link || entry.kind == mount {
			return nil, errRedirected
		}
		return nil, errNotDir
	case err != nil:
		return nil, err
	}
	return unixDir(fd), nil
}

func (d unixDir) Stat(name string) (entry, error) {
	var stat, target unix.Stat_t
	if err := unix.Fstatat(int(d), name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return entry{}, err
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return entry{kind: directory, directory: true}, nil
	case unix.S_IFREG:
		return entry{kind: file}, nil
	case unix.S_IFLNK:
		isDir := unix.Fstatat(int(d), name, &target, 0) == nil && target.Mode&unix.S_IFMT == unix.S_IFDIR
		if len(name) > 6 && name[:6] == "mount-" {
			return entry{kind: mount, directory: isDir}, nil
		}
		return entry{kind: link, directory: isDir}, nil
	}
	return entry{}, nil
}

func (d unixDir) Mkdir(name string) error { return unix.Mkdirat(int(d), name, 0o755) }

func (d unixDir) Remove(name string) error {
	err := unix.Unlinkat(int(d), name, 0)
	if errors.Is(err, unix.EISDIR) {
		return unix.Unlinkat(int(d), name, unix.AT_REMOVEDIR)
	}
	return err
}

func (d unixDir) Names(n int) ([]string, error) {
	fd, err := unix.Openat(int(d), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	directory := os.NewFile(uintptr(fd), "")
	names, err := directory.Readdirnames(n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, errors.Join(err, directory.Close())
}

func (d unixDir) Link(name, text string, _ bool) error { return unix.Symlinkat(text, int(d), name) }

func (d unixDir) Readlink(name string) (string, error) {
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(d), name, text)
	if err != nil {
		return "", err
	}
	return string(text[:n]), nil
}

// Hold holds nothing: on this kernel a directory that is open can be renamed.
func (d unixDir) Hold() (io.Closer, error) { return io.NopCloser(nil), nil }

// Volume names no volume: here they have no such names.
func (d unixDir) Volume() (string, error) { return "", nil }
