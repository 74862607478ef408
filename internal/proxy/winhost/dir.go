package winhost

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// kind is what a name stands for, when nothing is followed.
type kind int

const (
	other     kind = iota // none of the below: a device, or a reparse point that does not redirect
	file                  // an ordinary file
	directory             // an ordinary directory
	link                  // a symbolic link
	mount                 // a mount point: a mounted volume or a junction
)

// entry is what a directory holds under a name.
type entry struct {
	kind kind
	// directory says that a link or mount point was made to stand for a directory.
	directory bool
}

// dir is an open directory. Its names are single names: no method takes a path, so no method can be
// led out of the directory by one. No method follows what a name stands for, except where it says so.
type dir interface {
	// Open steps down into an ordinary directory, and never into a link: the check is on what was opened.
	Open(name string) (dir, error)
	Stat(name string) (entry, error)
	// Mkdir makes a directory; anything that is there already is fs.ErrExist.
	Mkdir(name string) error
	// Remove removes a file, a link, a mount point or an empty directory.
	Remove(name string) error
	// Names returns up to n names, counted from the beginning at every call.
	Names(n int) ([]string, error)
	// Link makes a symbolic link with this text.
	Link(name, text string, directory bool) error
	// Readlink returns the text of a link or a mount point.
	Readlink(name string) (string, error)
	// Volume names the volume that the directory is on, as the mount manager does; nothing if it has no such name.
	Volume() (string, error)
	// Hold keeps the directory from being renamed and removed until what it returns is closed. A directory that has been moved
	// since it was opened is errRedirected.
	Hold() (io.Closer, error)
	Close() error
}

var (
	// errRedirected means that a link or a mount point stands where a directory must be.
	errRedirected = fmt.Errorf("a link or mount point is not followed: %w", fs.ErrPermission)
	errNotDir     = errors.New("not a directory")
)

// checkName is the last check before a name reaches the kernel. Windows takes / and \ as separators
// and the text after a colon as a stream.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\:\x00") {
		return fmt.Errorf("%q: %w", name, fs.ErrInvalid)
	}
	return nil
}
