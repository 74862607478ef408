package evidence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// DirStore keeps checkpoints as files in a directory, for one witness of one process. Each file is one that verification takes as an outside checkpoint.
type DirStore struct {
	dir string
	mu  sync.Mutex
}

var _ Store = (*DirStore)(nil)

// NewDirStore returns a store in a directory, which is made if it is missing.
func NewDirStore(dir string) (*DirStore, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store of an audit witness: %w", err)
	}
	return &DirStore{dir: dir}, nil
}

// file is where the checkpoint of a log is: origins may hold what no file name may.
func (s *DirStore) file(origin string) string {
	sum := sha256.Sum256([]byte(origin))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16])+".checkpoint")
}

// Last implements Store.
func (s *DirStore) Last(_ context.Context, origin string) ([]byte, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last(origin)
}

func (s *DirStore) last(origin string) ([]byte, string, error) {
	raw, err := readSmall(s.file(origin), 2*maxNote)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(raw)
	return raw, hex.EncodeToString(sum[:]), nil
}

// Swap implements Store.
func (s *DirStore) Swap(_ context.Context, origin, version string, checkpoint []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, now, err := s.last(origin)
	if err != nil {
		return err
	}
	if now != version {
		return ErrChanged
	}
	return replace(s.file(origin), checkpoint)
}
