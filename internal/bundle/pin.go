package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// Pin accepts bundles of these keys from now on, and no others. A bundle in force that none of them signed is withdrawn at once. From now on, only what these
// keys have signed determines which revisions are too old.
func (k *Keeper) Pin(keys Keys) error {
	if len(keys.byID) == 0 {
		return errors.New("no key, so no bundle could be verified")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.o.Keys = keys
	k.pinned.Add(1)
	k.o.Log.Info("keys pinned", zap.Stringer(logkeys.Name, keys))
	if a := k.active.Load(); a != nil && !keys.has(a.seal.Key) {
		k.active.Store(nil)
		k.refuse(refuse(ReasonKey, fmt.Errorf("revision %d was signed with %s, which is not pinned any more", a.bundle.Revision, a.seal.Key)))
	}
	return nil
}

// FollowKeys pins the keys of a file whenever they differ from pinned, which is what was read of it last, until ctx is done.
// A file that cannot be read, that others than administrators can change, or that holds no keys, changes nothing.
func (k *Keeper) FollowKeys(ctx context.Context, file string, pinned []byte, interval time.Duration) {
	said := ""
	periodic.Run(ctx, interval, func() {
		text, err := ReadPinnedKeys(file)
		if err == nil && bytes.Equal(text, pinned) {
			said = ""
			return
		}
		var keys Keys
		if err == nil {
			keys, err = ParseKeys(text)
		}
		if err == nil {
			err = k.Pin(keys)
		}
		if err == nil {
			pinned, said = text, ""
			return
		}
		if said != err.Error() {
			said = err.Error()
			k.o.Log.Error("the file of keys cannot be used: the keys that were pinned before stay", zap.String(logkeys.Path, file), zap.Error(err))
		}
	})
}
