package filetrust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/atmost"
)

// Check refuses a file or directory that other accounts can change or replace: it belongs to one of them, its access lets one of them
// write, or one of the directories above lets one of them put another in its place. A directory is checked with everything beneath it.
// What is not there is no error: it is checked once it is there.
func Check(path string) error { return checkAs(path, alone) }

func checkAs(path string, d demand) error {
	path, err := full(path)
	if err != nil {
		return err
	}
	info, err := checkWay(path, d)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return tree{}.check(path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a directory", path)
	}
	return checkFile(path)
}

// Read returns the content of a file that decides, of 1 to most bytes, unless Check refuses the file. Each read of such a file is by Read, the first
// and every later one: its owner and mode can have changed since.
func Read(path string, most int64) ([]byte, error) {
	if err := Check(path); err != nil {
		return nil, err
	}
	return ReadSmall(path, most)
}

// ReadPlaced is Read for a file that another program of the machine keeps. Others may make files beside it, as they may by default in
// directories of a Windows volume; none of them may change it or put another in its place.
func ReadPlaced(path string, most int64) ([]byte, error) {
	if err := checkAs(path, placed); err != nil {
		return nil, err
	}
	return ReadSmall(path, most)
}

// demand is what is asked of the directories on the way to a file.
type demand int

const (
	// owned are directories that belong to no other account.
	owned demand = iota
	// placed are those, and others can replace nothing in them.
	placed
	// alone are those, and others can make nothing in the last of them.
	alone
)

// ReadSmall returns the content of a regular file that decides nothing, such as a credential, of 1 to most bytes.
func ReadSmall(path string, most int64) ([]byte, error) {
	content, err := atmost.ReadFile(path, most)
	if err == nil && len(content) == 0 {
		return nil, fmt.Errorf("%s is empty", path)
	}
	return content, err
}

// CheckOwners refuses a file or directory that belongs to another account, or whose way leads through a directory or a link that does.
// Who else may write there is not asked: it is for files that this program only writes, as a log, so that nothing is written where
// another account has it led.
func CheckOwners(path string) error {
	path, err := full(path)
	if err != nil {
		return err
	}
	if _, err = checkWay(path, owned); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// full is a path from the root. The system goes up by ".." from where a link leads, and the text of a path does not show that, so none
// may stand behind a name.
func full(path string) (string, error) {
	volume := filepath.VolumeName(path)
	rest := filepath.ToSlash(path[len(volume):])
	up := 0
	if !filepath.IsAbs(path) {
		for ; strings.HasPrefix(rest, "../") || strings.HasPrefix(rest, "./"); rest = strings.TrimLeft(rest[strings.Index(rest, "/"):], "/") {
			if strings.HasPrefix(rest, "../") {
				up++
			}
		}
	}
	if slices.Contains(strings.Split(rest, "/"), "..") {
		return "", fmt.Errorf("%s: a path with .. in it may lead elsewhere than it reads; name the file without", path)
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	if volume != "" {
		return "", fmt.Errorf("%s: want a full path", path)
	}
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir) // which may be named by a link itself
	}
	if err != nil {
		return "", err
	}
	for range up {
		dir = filepath.Dir(dir)
	}
	return filepath.Join(dir, filepath.FromSlash(rest)), nil
}

// tree is a look at a directory and everything beneath it: the directories that were looked at, which links can lead to again.
type tree map[string]bool

// check checks a directory and what is in it. Links are followed when the directory is read, so what they lead to counts.
func (t tree) check(dir string) error {
	if t[dir] {
		return nil
	}
	t[dir] = true
	if err := checkContents(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > maxEntries {
		return fmt.Errorf("%s has %d entries; %d are the bound", dir, len(entries), maxEntries)
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch mode := entry.Type(); {
		case mode.IsDir():
			err = t.check(path)
		case mode.IsRegular():
			err = checkFile(path)
		case mode&fs.ModeSymlink != 0:
			err = t.checkLink(path)
		default:
			err = fmt.Errorf("%s is neither a file nor a directory", path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxEntries bounds a directory, which is one of Rego modules and holds a handful.
const maxEntries = 10_000

// Fault is why an account that may not decide could change a file.
type Fault struct {
	// Path is the file or directory that can be changed.
	Path string
	// Reason says by whom, and by what.
	Reason string
	// Remedy is what mends it.
	Remedy string
}

func (f *Fault) Error() string {
	return fmt.Sprintf("%s: %s; an account that can change it decides about calls (%s)", f.Path, f.Reason, f.Remedy)
}
