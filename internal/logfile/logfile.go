// Package logfile writes diagnostics to a file and rotates it by size.
// It follows no link and writes to no file of another account, so that write access to the directory cannot redirect it.
package logfile

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/filetrust"
)

// Options bound what a log takes up. Zero values stand for the defaults.
type Options struct {
	MaxSizeMB  int // in MiB, at which the file is renamed; 100; a negative one is no bound
	MaxBackups int // renamed files that are kept; 5
	MaxAgeDays int // after which a renamed file is removed; 30
}

// errFull is a file that could not be renamed and has grown to twice its bound. Lines are dropped until it can be.
var errFull = errors.New("the log file is full and cannot be renamed")

// File is a log file. Any number of goroutines may write to it.
type File struct {
	path    string
	options Options
	most    int64 // bytes; 0 is no bound

	mu   sync.Mutex // guards the fields below
	file *os.File
	size int64
	next int64 // the size at which it is to be renamed
}

// Open opens a file for its owner alone, where the system knows owners, and appends to it. A directory that is not
// there is not made: it would have the access that the directory above gives. A link, and a file, directory or link on the way that
// belongs to another account, is an error.
func Open(path string, o Options) (*File, error) {
	o = Options{cmp.Or(o.MaxSizeMB, 100), cmp.Or(o.MaxBackups, 5), cmp.Or(o.MaxAgeDays, 30)}
	f := &File{path: filepath.Clean(path), options: o}
	if o.MaxSizeMB > 0 {
		f.most = int64(o.MaxSizeMB) << 20
	}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("open log file: %w", err)
	}
	return f, nil
}

// open opens or makes the file.
func (f *File) open() error {
	if err := filetrust.CheckOwners(f.path); err != nil {
		return err
	}
	file, err := openPlain(f.path)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no plain file", f.path)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.file, f.size, f.next = file, info.Size(), f.most
	return nil
}

// Write appends a line. A file that would grow beyond its bound is renamed before, and a new one begun.
func (f *File) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	if f.most > 0 && f.size > 0 && f.size+int64(len(line)) > f.next {
		if err := f.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(line)
	f.size += int64(n)
	return n, err
}

// rotate renames the file and begins a new one. One that cannot be renamed, since another program has it open, is written on, up to
// twice its bound.
func (f *File) rotate() error {
	err := f.file.Close()
	f.file = nil
	if err != nil {
		return err
	}
	size := f.size
	if renamed := os.Rename(f.path, f.backup(time.Now())); renamed != nil {
		if err := f.open(); err != nil {
			return err
		}
		if f.next = size + f.most/16; size >= 2*f.most {
			f.next = f.most
			return fmt.Errorf("%w: %w", errFull, renamed)
		}
		return nil
	}
	if err := f.open(); err != nil {
		return err
	}
	f.prune(time.Now())
	return nil
}

// stamp is what is put between the name of a renamed file and its extension: when it was renamed, in UTC.
const stamp = "2006-01-02T15-04-05.000"

func (f *File) backup(now time.Time) string {
	extension := filepath.Ext(f.path)
	return f.path[:len(f.path)-len(extension)] + "-" + now.UTC().Format(stamp) + extension
}

// prune removes renamed files that are too many or too old, as their names say. One that stays takes room and nothing else.
func (f *File) prune(now time.Time) {
	extension := filepath.Ext(f.path)
	prefix := filepath.Base(f.path[:len(f.path)-len(extension)]) + "-"
	entries, err := os.ReadDir(filepath.Dir(f.path)) // by name, and so by age
	if err != nil {
		return
	}
	kept := 0
	for _, entry := range slices.Backward(entries) {
		name := entry.Name()
		rest, isOurs := strings.CutPrefix(name, prefix)
		rest, hasEnd := strings.CutSuffix(rest, extension)
		at, err := time.Parse(stamp, rest)
		if err != nil || !isOurs || !hasEnd || len(rest) != len(stamp) {
			continue
		}
		if kept++; kept > f.options.MaxBackups || now.Sub(at) > time.Duration(f.options.MaxAgeDays)*24*time.Hour {
			_ = os.Remove(filepath.Join(filepath.Dir(f.path), name))
		}
	}
}

// Sync does nothing: each line has been handed to the system when Write returns.
func (*File) Sync() error { return nil }

// Close closes the file. A line that is written later opens it again.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}
