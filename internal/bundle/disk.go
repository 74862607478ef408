package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/pipeguard/pipeguard/internal/atmost"
	"github.com/pipeguard/pipeguard/internal/atomicfile"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// state is what must outlive the process. What a key has signed counts while it is pinned, so that the revisions of a key
// that others had do not outlive it.
type state struct {
	Schema   string `json:"schema"`
	Audience string `json:"audience"`
	// Keys are those whose bundles were taken, the last one last. Keys that are pinned no more stay, up to maxSeen: they may be pinned again.
	Keys []seen `json:"keys"`
}

// seen is the newest bundle that was taken from a key. Its revision is the oldest that may still be taken.
type seen struct {
	Key      KeyID  `json:"key"`
	Revision uint64 `json:"revision"`
	Digest   string `json:"digest"`
	// Ended says that its time was seen to be over, by whatever clock.
	Ended bool `json:"ended"`
}

const (
	stateSchema = "pipeguard.dev/bundle-state/v2"
	// maxState bounds the file in bytes.
	maxState = 4 << 10
	// maxSeen bounds the keys of a state: as many as can be pinned, and as many that were.
	maxSeen = 2 * maxKeys
)

// oldest is the oldest revision that may still be taken.
func (s state) oldest(pinned Keys, minimum uint64) uint64 {
	for _, one := range s.Keys {
		if pinned.has(one.Key) {
			minimum = max(minimum, one.Revision)
		}
	}
	return minimum
}

// admits says whether a bundle may follow what was seen.
func (s state) admits(b Bundle, seal Seal, pinned Keys, minimum uint64) error {
	if oldest := s.oldest(pinned, minimum); b.Revision < oldest {
		return refuse(ReasonRollback, fmt.Errorf("revision %d is older than %d", b.Revision, oldest))
	}
	for _, one := range s.Keys {
		switch {
		case !pinned.has(one.Key) || b.Revision != one.Revision:
		case seal.Digest != one.Digest:
			return refuse(ReasonTwice, fmt.Errorf("revision %d had another content before", b.Revision))
		case one.Ended:
			return refuse(ReasonExpired, fmt.Errorf("revision %d was seen to have ended at %s; a newer one is needed, or the clock was wrong then", b.Revision, stamp(b.ExpiresAt)))
		}
	}
	return nil
}

// with returns the state after a bundle was accepted. If there are too many keys, it forgets keys that are no longer pinned, those whose bundles were accepted
// longest ago first.
func (s state) with(b Bundle, seal Seal, pinned Keys) state {
	s.Keys = slices.DeleteFunc(slices.Clone(s.Keys), func(one seen) bool { return one.Key == seal.Key })
	for i := 0; i < len(s.Keys) && len(s.Keys) >= maxSeen; {
		if pinned.has(s.Keys[i].Key) {
			i++
		} else {
			s.Keys = slices.Delete(s.Keys, i, i+1)
		}
	}
	s.Keys = append(s.Keys, seen{Key: seal.Key, Revision: b.Revision, Digest: seal.Digest})
	return s
}

// has says whether this content, signed with this key, is the newest that was accepted of the key.
func (s state) has(seal Seal) bool {
	return slices.ContainsFunc(s.Keys, func(one seen) bool { return one.Key == seal.Key && one.Digest == seal.Digest })
}

// ended notes the end of a bundle for every key that signed it. It returns false if that was known.
func (s state) ended(digest string) (_ state, changed bool) {
	s.Keys = slices.Clone(s.Keys)
	for i, one := range s.Keys {
		if one.Digest == digest && !one.Ended {
			s.Keys[i].Ended, changed = true, true
		}
	}
	return s, changed
}

// last is the digest of the bundle that was taken last; empty if there is none.
func (s state) last() string {
	if len(s.Keys) == 0 {
		return ""
	}
	return s.Keys[len(s.Keys)-1].Digest
}

// disk keeps a state and a bundle in a private directory.
type disk struct{ dir string }

// stateFile is where the state of an audience is kept. Each has its own, so that a node that goes to another pool and comes back still
// knows which revisions are too old.
func (d disk) stateFile(audience string) string {
	return filepath.Join(d.dir, "state-"+filepath.Base(audience)+".json")
}

// load returns an empty state if nothing was kept for the audience yet. raw is nil if there is no bundle; it is not verified.
func (d disk) load(audience string) (s state, raw []byte, err error) {
	if err := winsvc.MakePrivate(d.dir); err != nil {
		return state{}, nil, fmt.Errorf("make %s private: %w", d.dir, err)
	}
	text, err := atmost.ReadFile(d.stateFile(audience), maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return state{Schema: stateSchema, Audience: audience, Keys: []seen{}}, nil, nil
	}
	if err == nil {
		err = decode(bytes.TrimSuffix(text, []byte("\n")), &s)
	}
	if err == nil && s.Schema != stateSchema {
		err = fmt.Errorf("schema %q: want %q", s.Schema, stateSchema)
	}
	if err == nil && s.Audience != audience {
		err = fmt.Errorf("it belongs to the audience %q", s.Audience)
	}
	if err != nil {
		return state{}, nil, fmt.Errorf("%s says which bundles are too old and cannot be read; remove the directory and set a minimum revision: %w", d.stateFile(audience), err)
	}
	if raw, err = ReadFile(d.bundle(s)); err != nil {
		raw = nil // a bundle that is lost is offered again; what was seen still counts
	}
	return s, raw, nil
}

// bundle is the file of a state's bundle. Its name has a digest that was read from the disk, so only the base of that is used.
func (d disk) bundle(s state) string {
	return filepath.Join(d.dir, "bundle-"+filepath.Base(s.last())+".tar.gz")
}

// save stores the bundle first: a state never names one that is not there.
func (d disk) save(s state, raw []byte) error {
	if err := d.replace(d.bundle(s), raw); err != nil {
		return err
	}
	if err := d.saveState(s); err != nil {
		return err
	}
	d.removeOthers(s)
	return nil
}

func (d disk) saveState(s state) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return d.replace(d.stateFile(s.Audience), append(text, '\n'))
}

// removeOthers removes bundles of earlier states. One that stays takes room and nothing else.
func (d disk) removeOthers(s state) {
	all, err := filepath.Glob(filepath.Join(d.dir, "bundle-*"))
	if err != nil {
		return
	}
	for _, name := range all {
		if name != d.bundle(s) {
			_ = os.Remove(name)
		}
	}
}

// replace writes a file so that after a crash there is the old one or the new one.
func (d disk) replace(name string, text []byte) error {
	f, err := os.CreateTemp(d.dir, "bundle-*.new") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return atomicfile.Commit(f, name, err)
}
