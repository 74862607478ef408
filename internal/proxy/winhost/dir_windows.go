package winhost

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// openDir is a directory that is held by a handle. final is its path as the kernel would write it.
type openDir struct {
	handle windows.Handle
	final  string
}

// openWorking opens a working directory. The operator chose this path, so links in it are followed.
func openWorking(path string) (dir, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	handle, err := windows.CreateFile(name, windows.FILE_LIST_DIRECTORY|windows.FILE_READ_ATTRIBUTES|windows.SYNCHRONIZE,
		shareAll, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return nil, err
	}
	return adopt(handle)
}

// adopt takes a handle over, and closes it if it is not a directory's.
func adopt(handle windows.Handle) (*openDir, error) {
	final, err := finalPath(handle)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read its final path: %w", err), windows.CloseHandle(handle))
	}
	return &openDir{handle: handle, final: final}, nil
}

func (d *openDir) Close() error { return windows.CloseHandle(d.handle) }

// Hold opens the directory once more without FILE_SHARE_DELETE: to rename or remove it takes a handle with DELETE access, which
// no program gets meanwhile. The right to list it is asked for because a handle without a right to data takes no part in sharing.
func (d *openDir) Hold() (io.Closer, error) {
	handle, err := openSharing(d.handle, "", windows.FILE_LIST_DIRECTORY|windows.FILE_READ_ATTRIBUTES, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE,
		windows.FILE_OPEN, windows.FILE_DIRECTORY_FILE)
	if err != nil {
		return nil, err
	}
	held, err := adopt(handle)
	if err != nil {
		return nil, err
	}
	if !safepath.EqualFold(held.final, d.final) {
		return nil, errors.Join(fmt.Errorf("%w: %s is %s now", errRedirected, d.final, held.final), held.Close())
	}
	return held, nil
}

func (d *openDir) Open(name string) (dir, error) {
	handle, err := openAt(d.handle, name, windows.FILE_LIST_DIRECTORY|windows.FILE_READ_ATTRIBUTES, windows.FILE_OPEN, windows.FILE_DIRECTORY_FILE)
	if errors.Is(err, windows.ERROR_DIRECTORY) {
		return nil, errNotDir
	}
	if err != nil {
		return nil, err
	}
	entry, err := describe(handle)
	if err == nil && entry.kind != directory { // any reparse point, also those that only a driver understands
		err = errRedirected
	}
	if err != nil {
		return nil, errors.Join(err, windows.CloseHandle(handle))
	}
	next, err := adopt(handle)
	if err != nil {
		return nil, err
	}
	// A second opinion: what was opened must lie where it was asked for. It also refuses short (8.3) names,
	// under which a path would be another to the rules than it is on the disk.
	if want := strings.TrimSuffix(d.final, `\`) + `\` + name; !safepath.EqualFold(next.final, want) {
		return nil, errors.Join(fmt.Errorf("%w: %s is %s", errRedirected, name, next.final), next.Close())
	}
	return next, nil
}

func (d *openDir) Stat(name string) (entry, error) {
	handle, err := openAt(d.handle, name, windows.FILE_READ_ATTRIBUTES, windows.FILE_OPEN, 0)
	if err != nil {
		return entry{}, err
	}
	defer func() { _ = windows.CloseHandle(handle) }() // read only
	return describe(handle)
}

func (d *openDir) Mkdir(name string) error {
	handle, err := openAt(d.handle, name, windows.FILE_READ_ATTRIBUTES, windows.FILE_CREATE, windows.FILE_DIRECTORY_FILE)
	if err != nil {
		return err
	}
	return windows.CloseHandle(handle)
}

func (d *openDir) Remove(name string) error {
	handle, err := openAt(d.handle, name, windows.DELETE|windows.FILE_READ_ATTRIBUTES|windows.FILE_WRITE_ATTRIBUTES, windows.FILE_OPEN, 0)
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		// The parent may give the right to delete what itself gives no other right.
		handle, err = openAt(d.handle, name, windows.DELETE, windows.FILE_OPEN, 0)
	}
	if err != nil {
		return err
	}
	return errors.Join(markDeleted(handle), windows.CloseHandle(handle))
}

// Names reads from a handle of its own, because a handle remembers how far it was read.
func (d *openDir) Names(n int) ([]string, error) {
	handle, err := openAt(d.handle, "", windows.FILE_LIST_DIRECTORY|windows.FILE_READ_ATTRIBUTES, windows.FILE_OPEN, windows.FILE_DIRECTORY_FILE)
	if err != nil {
		return nil, err
	}
	directory := os.NewFile(uintptr(handle), d.final)
	names, err := directory.Readdirnames(n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, errors.Join(err, directory.Close())
}

// Volume asks for the path by the volume's name, and takes that of the volume from its beginning.
func (d *openDir) Volume() (string, error) {
	const volumeNameGUID = 0x1
	path, err := pathOf(d.handle, volumeNameGUID)
	if errors.Is(err, windows.ERROR_PATH_NOT_FOUND) { // a volume that the mount manager does not know
		return "", nil
	}
	name, _, isVolume := strings.Cut(path, `}\`)
	if err != nil || !isVolume {
		return "", err
	}
	return name + `}\`, nil
}
