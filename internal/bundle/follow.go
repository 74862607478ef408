package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/atmost"
	"github.com/pipeguard/pipeguard/internal/filetrust"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// Follow offers the file at once and after each change, until ctx is done. The kubelet replaces a mounted ConfigMap as a
// whole, so there is never half a file. It is read again every interval: the exchange of a link far above it
// causes no notification. What stays the same is offered again once a minute, because the clock or the disk may have been the fault. A
// file that is not there is waited for.
func (k *Keeper) Follow(ctx context.Context, file string, interval time.Duration) error {
	var last []byte
	var again time.Time
	var pinned uint64 // what was refused may be taken under other keys
	look := func() {
		raw, err := ReadFile(file)
		sum := sha256.Sum256(raw)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			k.note(err)
		case !bytes.Equal(last, sum[:]) || !k.o.Now().Before(again) || pinned != k.pinned.Load():
			last, again, pinned = sum[:], k.o.Now().Add(time.Minute), k.pinned.Load()
			_, _ = k.Offer(ctx, raw) // which notes why it refuses
		}
	}
	look()
	periodic.Run(ctx, interval, look)
	return nil
}

// note records why a source gave nothing.
func (k *Keeper) note(err error) {
	if ReasonOf(err) == "" {
		err = refuse(ReasonArchive, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refuse(err)
	k.o.Log.Debug("source of bundles", zap.Error(err))
}

// ReadFile reads an archive, bounded in its size.
func ReadFile(name string) ([]byte, error) { return refuseSize(atmost.ReadFile(name, MaxCompressed)) }

// ReadKeyFile reads a file of keys, bounded in its size.
func ReadKeyFile(name string) ([]byte, error) { return atmost.ReadFile(name, maxKeyFile) }

// ReadPinnedKeys reads the file of the keys that a node believes, unless others than administrators can change it.
func ReadPinnedKeys(name string) ([]byte, error) { return filetrust.Read(name, maxKeyFile) }
