package proxy

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// disk is a directory in memory that knows what was flushed, and whose steps fail as they are told to.
type disk struct {
	mu    sync.Mutex
	files map[string]*diskFile
	steps int
	// fault is asked before each step that changes something: create, allocate, write, sync, flush, remove. Written is how much of a write that fails arrives.
	fault func(step int, what string) (written int, err error)
}

type diskFile struct {
	disk          *disk
	data          []byte
	flushed       int
	closed, gone  bool
	failedAlready bool
}

var errInjected = errors.New("input/output error")

func newDisk() *disk { return &disk{files: map[string]*diskFile{}} }

// failing changes what fails. The log tries again when the clock has moved on, which takes milliseconds where it is coarse.
func (d *disk) failing(fault func(step int, what string) (int, error)) {
	d.mu.Lock()
	d.fault = fault
	d.mu.Unlock()
	for now := time.Now(); !time.Now().After(now); {
		runtime.Gosched()
	}
}

func (d *disk) step(what string) (int, error) {
	d.steps++
	if d.fault == nil {
		return 0, nil
	}
	return d.fault(d.steps, what)
}

// isDurable says whether a flushed line of any file has all the texts.
func (d *disk) isDurable(texts ...string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.files {
		for line := range bytes.Lines(f.data[:f.flushed]) {
			if !slices.ContainsFunc(texts, func(text string) bool { return !bytes.Contains(line, []byte(text)) }) {
				return true
			}
		}
	}
	return false
}

// copies fails if a record stands twice on the disk without a mark. What is behind a failed write counts too: whoever ships files reads it.
func (d *disk) copies(t testing.TB) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	unmarked := map[string]int{}
	for _, f := range d.files {
		for line := range bytes.Lines(f.data) {
			e, err := audit.Parse(bytes.TrimSuffix(line, []byte("\n")))
			if err != nil || e.Again || e.Type == audit.TypeLog || e.Stage == audit.StageOrphaned {
				continue // half a line is no record
			}
			key := e.ID + "/" + string(e.Stage)
			if unmarked[key]++; unmarked[key] > 1 {
				t.Errorf("%s stands on the disk %d times without a mark", key, unmarked[key])
			}
		}
	}
}

// crash is what a new process finds after the power has failed: what was flushed.
func (d *disk) crash() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := newDisk()
	for name, f := range d.files {
		after.files[name] = &diskFile{disk: after, data: slices.Clone(f.data[:f.flushed]), flushed: f.flushed}
	}
	return after
}

func (d *disk) Names() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.files)), nil
}

func (d *disk) Create(name string) (segment.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.step("create"); err != nil {
		return nil, err
	}
	f := &diskFile{disk: d}
	d.files[name] = f
	return f, nil
}

func (d *disk) Read(name string) (io.ReadCloser, int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[name]
	if f == nil {
		return nil, 0, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(slices.Clone(f.data))), int64(len(f.data)), nil
}

func (d *disk) Flush(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.step("flush"); err != nil {
		return err
	}
	d.files[name].flushed = len(d.files[name].data)
	return nil
}

func (d *disk) Release(string) error { return nil }

func (d *disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.step("remove"); err != nil {
		return err
	}
	d.files[name].gone = true
	delete(d.files, name)
	return nil
}

func (d *disk) Close() error { return nil }

func (f *diskFile) Write(b []byte) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.closed || f.failedAlready {
		return 0, errors.New("a file was written to after it had failed")
	}
	n, err := f.disk.step("write")
	if err != nil {
		b, f.failedAlready = b[:min(n, len(b))], true
	}
	f.data = append(f.data, b...)
	return len(b), err
}

func (f *diskFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.closed || f.failedAlready {
		return errors.New("a file was flushed after it had failed")
	}
	if _, err := f.disk.step("sync"); err != nil {
		f.failedAlready = true
		return err
	}
	f.flushed = len(f.data)
	return nil
}

func (f *diskFile) Allocate(int64, int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	_, err := f.disk.step("allocate")
	return err
}

func (f *diskFile) IsHere() bool {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return !f.gone
}

func (f *diskFile) Close() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.closed = true
	return nil
}
