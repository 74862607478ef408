// Package store keeps what the witness of a test has cosigned.
// It trusts its only caller: no two write at once.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

// Dir keeps checkpoints as files in a directory, which is there, for one witness. Each file is one that verification takes as an outside checkpoint.
type Dir struct {
	path string
	mu   sync.Mutex
}

var _ evidence.Store = (*Dir)(nil)

// New returns a store in a directory.
func New(path string) *Dir { return &Dir{path: path} }

// file is where the checkpoint of a log is: origins may hold what no file name may.
func (d *Dir) file(origin string) string {
	sum := sha256.Sum256([]byte(origin))
	return filepath.Join(d.path, hex.EncodeToString(sum[:16])+".checkpoint")
}

// Last implements evidence.Store.
func (d *Dir) Last(_ context.Context, origin string) ([]byte, string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last(origin)
}

func (d *Dir) last(origin string) ([]byte, string, error) {
	raw, err := os.ReadFile(d.file(origin))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(raw)
	return raw, hex.EncodeToString(sum[:]), nil
}

// Swap implements evidence.Store.
func (d *Dir) Swap(_ context.Context, origin, version string, checkpoint []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, now, err := d.last(origin)
	if err != nil {
		return err
	}
	if now != version {
		return evidence.ErrChanged
	}
	return os.WriteFile(d.file(origin), checkpoint, 0o600)
}
