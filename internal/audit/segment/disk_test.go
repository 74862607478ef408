package segment

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"syscall"
)

// memory is a directory that keeps apart what is durable from what was only written, has so much room, and fails when it is told to.
type memory struct {
	mu    sync.Mutex
	files map[string]*memoryFile
	room  int64 // bytes that are free, -1 for no bound
	steps int
	// fault is asked before each step that changes something; written is how much of a failing write still arrives.
	fault func(step int, what string) (written int, err error)
}

type memoryFile struct {
	disk      *memory
	data      []byte
	durable   int
	allocated int64
	closed    bool
	poisoned  bool
	gone      bool
}

func newMemory() *memory { return &memory{files: map[string]*memoryFile{}, room: -1} }

var errFault = errors.New("injected fault")

func (m *memory) step(what string) (int, error) {
	m.steps++
	if m.fault == nil {
		return 0, nil
	}
	return m.fault(m.steps, what)
}

func (m *memory) Names() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.files)), nil
}

func (m *memory) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.step("create"); err != nil {
		return nil, err
	}
	if m.files[name] != nil {
		return nil, fs.ErrExist
	}
	f := &memoryFile{disk: m}
	m.files[name] = f
	return f, nil
}

func (m *memory) Read(name string) (io.ReadCloser, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.files[name]
	if f == nil {
		return nil, 0, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(slices.Clone(f.data))), int64(len(f.data)), nil
}

func (m *memory) Release(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.files[name]; f != nil {
		m.give(f)
	}
	return nil
}

// Flush is honest: what a new process sees, it can make durable.
func (m *memory) Flush(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.step("flush"); err != nil {
		return err
	}
	f := m.files[name]
	if f == nil {
		return fs.ErrNotExist
	}
	f.durable = len(f.data)
	return nil
}

// give frees what is allocated behind the end of a file.
func (m *memory) give(f *memoryFile) {
	if more := f.allocated - int64(len(f.data)); more > 0 && m.room >= 0 {
		m.room += more
	}
	f.allocated = min(f.allocated, int64(len(f.data)))
}

func (m *memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.step("remove"); err != nil {
		return err
	}
	f := m.files[name]
	if f == nil {
		return fs.ErrNotExist
	}
	m.give(f)
	if m.room >= 0 {
		m.room += int64(len(f.data))
	}
	f.gone = true
	delete(m.files, name)
	return nil
}

func (m *memory) Close() error { return nil }

// crash leaves of each file what is durable and so much of the rest, and forgets every fault.
func (m *memory) crash(more int) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := newMemory()
	for name, f := range m.files {
		n := min(len(f.data), f.durable+more)
		c.files[name] = &memoryFile{disk: c, data: slices.Clone(f.data[:n]), durable: n}
	}
	return c
}

func (f *memoryFile) Write(b []byte) (int, error) {
	m := f.disk
	m.mu.Lock()
	defer m.mu.Unlock()
	if f.closed || f.poisoned {
		return 0, errors.New("a file was used after it had failed")
	}
	n, err := m.step("write")
	if err != nil {
		b = b[:min(n, len(b))]
		f.poisoned = true
	}
	if need := int64(len(f.data)+len(b)) - max(f.allocated, int64(len(f.data))); m.room >= 0 && need > 0 {
		if need > m.room {
			b = b[:int64(len(b))-(need-m.room)]
			err, need, f.poisoned = syscall.ENOSPC, m.room, true
		}
		m.room -= need
	}
	f.data = append(f.data, b...)
	return len(b), err
}

func (f *memoryFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.closed || f.poisoned {
		return errors.New("a file was flushed after it had failed")
	}
	if _, err := f.disk.step("sync"); err != nil {
		f.poisoned = true
		return err
	}
	f.durable = len(f.data)
	return nil
}

func (f *memoryFile) Close() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.closed = true
	return nil
}

func (f *memoryFile) Allocate(offset, length int64) error {
	m := f.disk
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.step("allocate"); err != nil {
		return err
	}
	need := offset + length - max(f.allocated, int64(len(f.data)))
	if m.room >= 0 && need > m.room {
		return syscall.ENOSPC
	}
	if m.room >= 0 && need > 0 {
		m.room -= need
	}
	f.allocated = max(f.allocated, offset+length)
	return nil
}

func (f *memoryFile) IsHere() bool {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return !f.gone
}

func (m *memory) has(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[name] != nil
}

func (m *memory) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}
