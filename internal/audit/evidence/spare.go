package evidence

import (
	"errors"
	"os"
	"sync"

	"github.com/pipeguard/pipeguard/internal/atomicfile"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// spareBytes is more than the start of a log takes.
const spareBytes = 8 << 10

// spare is a file for the next start of the log, with its space: on a full disk, records cannot be removed before the start that goes on without them
// stands, and removing is what makes room.
type spare struct {
	path string // of the start

	mu   sync.Mutex // guards file
	file *os.File
}

// keep makes a spare file if there is none and the disk has room.
func (s *spare) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		return
	}
	file, err := atomicfile.Create(s.path)
	if err != nil {
		return
	}
	if err := segment.Reserve(file, 0, spareBytes); err != nil { // no room now, or never any to keep
		_ = discard(file) // it may stay: the next start removes it
		return
	}
	s.file = file
}

// take returns the spare file, or a new one.
func (s *spare) take() (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := s.file
	s.file = nil
	if file != nil {
		return file, nil
	}
	return atomicfile.Create(s.path)
}

// drop removes the spare file.
func (s *spare) drop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := s.file
	s.file = nil
	if file == nil {
		return nil
	}
	return discard(file)
}

func discard(file *os.File) error { return errors.Join(file.Close(), os.Remove(file.Name())) }
