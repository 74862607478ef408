package segment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/pipeguard/pipeguard/internal/atomicfile"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// ErrInUse means that another writer has the directory.
var ErrInUse = errors.New("another process writes to it")

// errNotOwner means that the lock was removed, so that another writer may have used the directory since.
var errNotOwner = errors.New("the lock of the directory was moved away or removed")

// directory is a Disk of the operating system.
type directory struct {
	path   string
	lock   *os.File
	locked fs.FileInfo // of lock, to know it by
}

// openDirectory makes the directory if it is missing, makes it private, and locks it for this process. A directory that is a link or belongs to another
// account is refused: its owner would decide where records go. ErrInUse means that it has a writer.
func openDirectory(path string) (*directory, error) {
	if info, err := os.Lstat(path); err == nil {
		switch {
		case info.Mode().IsRegular():
			return nil, errors.New("it is a file, and a log is a directory: give another path, or move the file away; \"pipeguard audit\" reads both")
		case !info.IsDir():
			return nil, errors.New("not a directory, or a link to one")
		}
		if err := checkOwner(info); err != nil {
			return nil, err
		}
		if err := checkEntries(path); err != nil {
			return nil, err
		}
	}
	if err := winsvc.MakePrivate(path); err != nil {
		return nil, err
	}
	name := filepath.Join(path, lockName)
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", lockName)
	}
	lock, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600) // #nosec G304,G703 -- in the directory that the operator names
	if err != nil {
		return nil, err
	}
	d := &directory{path: path, lock: lock}
	if err := d.own(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

// checkEntries refuses a directory that is not empty and was never a log: making it private would lock out its users.
func checkEntries(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == lockName }) {
		return nil // it is a log, whatever was added since
	}
	for _, e := range entries {
		switch _, isSegment := ParseName(e.Name()); {
		case isSegment || isCompanion(e.Name()) || isLeft(e): // of a log that was copied here
		default:
			return fmt.Errorf("it holds %q, which does not belong to an audit log: give the log a directory of its own", e.Name())
		}
	}
	return nil
}

func (d *directory) own() error {
	if err := lock(d.lock); err != nil {
		return err
	}
	var err error
	if d.locked, err = d.lock.Stat(); err != nil {
		return err
	}
	if !isAt(filepath.Join(d.path, lockName), d.locked) {
		return errNotOwner
	}
	if err := d.removeLeft(); err != nil {
		return err
	}
	return atomicfile.SyncDir(d.path)
}

// removeLeft removes unfinished files of earlier writers. Only a writer makes such files, and this process is now the only writer. A file that cannot be
// removed, perhaps because a scanner has it open, is reported with everything else that is not part of the log.
func (d *directory) removeLeft() error {
	_, strays, err := List(d.path)
	for _, s := range strays {
		if s.Kind == StrayLeft || s.Kind == StrayRoom {
			_ = os.Remove(s.Path)
		}
	}
	return err
}

func (d *directory) Names() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (d *directory) Create(name string) (File, error) {
	if !isAt(filepath.Join(d.path, lockName), d.locked) {
		return nil, errNotOwner
	}
	path := filepath.Join(d.path, name)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|appendFlag, 0o600) // #nosec G304 -- a name of ours
	if err != nil {
		return nil, err
	}
	opened, err := file.Stat()
	if err == nil {
		err = atomicfile.SyncDir(d.path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(path))
	}
	return &segmentFile{File: file, directory: d, opened: opened}, nil
}

func (d *directory) Read(name string) (io.ReadCloser, int64, error) {
	file, info, err := OpenRegular(filepath.Join(d.path, name))
	if err != nil {
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// Allocated tells how much of the disk a file takes: one with a hole takes less than it is long.
func (d *directory) Allocated(name string) (int64, error) {
	file, info, err := OpenRegular(filepath.Join(d.path, name))
	if err != nil {
		return 0, err
	}
	n, err := allocated(file, info)
	return n, errors.Join(err, file.Close())
}

func (d *directory) Flush(name string) error {
	file, err := os.OpenFile(filepath.Join(d.path, name), os.O_RDWR, 0) // #nosec G304 -- a name from the directory
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

func (d *directory) Release(name string) error { return release(filepath.Join(d.path, name)) }

func (d *directory) Remove(name string) error {
	if err := os.Remove(filepath.Join(d.path, name)); err != nil {
		return err
	}
	return atomicfile.SyncDir(d.path)
}

func (d *directory) Close() error { return d.lock.Close() }

// segmentFile is a File of the operating system.
type segmentFile struct {
	*os.File
	directory *directory
	opened    fs.FileInfo
}

func (f *segmentFile) Allocate(offset, length int64) error { return allocate(f.File, offset, length) }

func (f *segmentFile) IsHere() bool {
	return isAt(f.Name(), f.opened) && isAt(f.directory.lock.Name(), f.directory.locked)
}
