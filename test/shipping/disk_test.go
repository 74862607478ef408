//go:build unix

package shipping

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

var errDisk = errors.New("input/output error")

// disk is a directory whose writes fail when they are told to.
type disk struct {
	path string
	// fails is how the next write ends: after how many bytes, or with all of them written and a flush that fails. 0 is well.
	fails atomic.Int64
	// failed counts.
	failed atomic.Int64
}

// flush is a value of fails.
const flush = -1

func (d *disk) Names() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (d *disk) Create(name string) (segment.File, error) {
	f, err := os.OpenFile(filepath.Join(d.path, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &file{File: f, disk: d}, nil
}

func (d *disk) Read(name string) (io.ReadCloser, int64, error) {
	f, err := os.Open(filepath.Join(d.path, name))
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

func (d *disk) Flush(string) error       { return nil }
func (d *disk) Release(string) error     { return nil }
func (d *disk) Remove(name string) error { return os.Remove(filepath.Join(d.path, name)) }
func (d *disk) Close() error             { return nil }

type file struct {
	*os.File
	disk    *disk
	written int
}

func (f *file) Write(p []byte) (int, error) {
	f.written++
	at := f.disk.fails.Load()
	if at <= 0 || f.written < 3 || !f.disk.fails.CompareAndSwap(at, 0) { // not before the segment has records
		return f.File.Write(p)
	}
	f.disk.failed.Add(1)
	n, err := f.File.Write(p[:min(int(at), len(p))])
	return n, errors.Join(errDisk, err)
}

func (f *file) Sync() error {
	if f.written >= 3 && f.disk.fails.CompareAndSwap(flush, 0) {
		f.disk.failed.Add(1)
		return errDisk
	}
	return nil // what happens to the machine is not what is tested
}

func (f *file) Allocate(int64, int64) error { return nil }
func (f *file) IsHere() bool                { return true }
