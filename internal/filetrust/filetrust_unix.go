//go:build !windows

package filetrust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxLinks is how many links a path may go through, as on Linux.
const maxLinks = 40

// CheckPlace refuses a file or directory that belongs to another account, or in whose place another account can put something else. What
// is in a directory is not looked at. It must be there.
func CheckPlace(path string) error {
	path, err := full(path)
	if err != nil {
		return err
	}
	_, err = checkWay(path, placed)
	return err
}

// checkWay checks every directory above path, and above what the links on its way lead to: their owners, and unless d is owned who may
// write there, which here is to replace as well. It returns what is at the end, whose owner alone was checked.
func checkWay(path string, d demand) (fs.FileInfo, error) {
	w := way{writers: d != owned}
	info, err := w.walk(path)
	if err == nil {
		err = checkOwner(path, info)
	}
	return info, err
}

type way struct {
	writers bool
	links   int // that were followed
}

func (w *way) walk(path string) (fs.FileInfo, error) {
	if dir := filepath.Dir(path); dir != path {
		info, err := w.walk(dir)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("%s is no directory", dir)
		}
		if dir, err = filepath.EvalSymlinks(dir); err != nil { // each of these links was checked
			return nil, err
		}
		if err := w.checkEntries(dir); err != nil {
			return nil, err
		}
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return info, err
	}
	if w.links++; w.links > maxLinks {
		return nil, fmt.Errorf("%s: more than %d links", path, maxLinks)
	}
	if err := checkOwner(path, info); err != nil {
		return nil, err
	}
	target, err := os.Readlink(path)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(path), target)
	}
	return w.walk(target)
}

// checkEntries refuses a directory in which others can replace what is there. A sticky one, as /tmp is, lets them replace what is
// their own.
func (w *way) checkEntries(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !w.writers || info.Mode()&fs.ModeSticky != 0 {
		return checkOwner(dir, info)
	}
	return check(dir, info)
}

// checkContents refuses a directory in which others can make anything.
func checkContents(dir string) error { return checkFile(dir) }

func checkFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return check(path, info)
}

func (t tree) checkLink(path string) error {
	info, err := checkWay(path, alone)
	if err != nil {
		return err
	}
	if info.IsDir() {
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return err
		}
		return t.check(target)
	}
	return checkFile(path)
}

func check(path string, info fs.FileInfo) error {
	if err := checkOwner(path, info); err != nil {
		return err
	}
	const others = 0o022
	if mode := info.Mode().Perm(); mode&others != 0 {
		return &Fault{path, fmt.Sprintf("its mode %#o lets its group or others write", mode), "chmod go-w " + path}
	}
	return nil
}

// checkOwner accepts what belongs to root or to this account.
func checkOwner(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("owner of " + path + ": the system does not say")
	}
	if self := os.Geteuid(); stat.Uid == 0 || int(stat.Uid) == self {
		return nil
	}
	return &Fault{path, fmt.Sprintf("it belongs to the user %d", stat.Uid), "look at what is in it, then chown it to the account of this program"}
}
