package install

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/pipeguard/pipeguard/internal/atomicfile"
)

// Names beside an installed file.
const (
	newSuffix = ".new" // written, and not yet in place
	oldSuffix = ".old" // what a new one has replaced
)

// replacement is a file that is to take the place of another, or took it.
type replacement struct {
	path    string
	had     bool // there was a file before
	swapped bool
}

// prepare writes a new content beside path. Readers of path see nothing of it yet.
func prepare(path string, content io.Reader, mode fs.FileMode) (*replacement, error) {
	r := &replacement{path: path}
	if err := os.Remove(path + newSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	file, err := os.OpenFile(path+newSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(file, content)
	if err = atomicfile.Close(file, err); err != nil {
		return nil, fmt.Errorf("write %s: %w", path+newSuffix, err)
	}
	return r, nil
}

// swap puts the new file in place and keeps the old one aside, which on Windows is possible while it runs.
func (r *replacement) swap() error {
	if err := os.Remove(r.path + oldSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the one before last: %w", err)
	}
	err := os.Rename(r.path, r.path+oldSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.had = err == nil
	r.swapped = true
	return os.Rename(r.path+newSuffix, r.path)
}

// over puts the new file in the place of the old one in a single step, so that a reader finds one or the other. On
// Windows this waits for readers.
func (r *replacement) over() error {
	var err error
	for range 20 {
		if err = os.Rename(r.path+newSuffix, r.path); err == nil || errors.Is(err, fs.ErrNotExist) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

// undo puts the old file back.
func (r *replacement) undo() error {
	if !r.swapped {
		return ignoreMissing(os.Remove(r.path + newSuffix))
	}
	r.swapped = false
	err := ignoreMissing(os.Rename(r.path, r.path+newSuffix)) // aside: it may still run
	if r.had {
		err = errors.Join(err, os.Rename(r.path+oldSuffix, r.path))
	}
	_ = os.Remove(r.path + newSuffix) // a program that still runs is removed by the next installation
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// isSame says whether two files have the same content. A missing file is not the same as any other.
func isSame(a, b string) (bool, error) {
	first, err := sum(a)
	if err != nil {
		return false, err
	}
	second, err := sum(b)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return bytes.Equal(first, second), err
}

func sum(path string) ([]byte, error) {
	file, err := os.Open(path) // #nosec G304 -- a file of the installation
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	_, err = io.Copy(h, file)
	return h.Sum(nil), errors.Join(err, file.Close())
}
