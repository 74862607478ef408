package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pipeguard/pipeguard/internal/atmost"
	"github.com/pipeguard/pipeguard/internal/atomicfile"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// stateTitle is the first line of a file that remembers, beside a private key, the last checkpoint that the key signed. An account that can write to the log and not
// there can remove checkpoints from the log, but not this one.
const stateTitle = "pipeguard.dev/audit-signed/v1"

// stateSlot is the length of one of the two places of such a file, in bytes. They are written in turn, so that one of them is whole after a crash.
const stateSlot = 4096

// ErrCheckpointsGone means that a log's own file lacks checkpoints that its key has signed. The log goes on if it fits them.
var ErrCheckpointsGone = errors.New("checkpoints are missing from the directory of the audit log")

// ErrCheckpointsStrange means that a log's own file holds what looks like checkpoints and is none: the file was changed. The log goes on.
var ErrCheckpointsStrange = errors.New("the checkpoints in the directory of the audit log were changed")

// ErrStartChanged means that the tree of removed records, beside a log that is being written, was removed or is another one.
var ErrStartChanged = errors.New("the file start of the audit log was removed or changed")

// formatState is the content of a slot: title, hash of the rest, the checkpoint. Of a log of which nothing is signed yet there is none.
func formatState(raw []byte) ([]byte, error) {
	sum := sha256.Sum256(raw)
	text := fmt.Appendf(nil, "%s\n%s\n%d\n%s", stateTitle, hex.EncodeToString(sum[:]), len(raw), raw)
	if len(text) > stateSlot {
		return nil, fmt.Errorf("a checkpoint of %d bytes", len(raw))
	}
	return append(text, make([]byte, stateSlot-len(text))...), nil
}

// parseState reads a slot. ok is false if it was not written whole.
func parseState(slot []byte) (raw []byte, ok bool) {
	lines := bytes.SplitN(slot, []byte("\n"), 4)
	if len(lines) < 4 || string(lines[0]) != stateTitle {
		return nil, false
	}
	n, isNumber := parseNumber(string(lines[2]))
	if !isNumber || n > uint64(len(lines[3])) {
		return nil, false
	}
	raw = lines[3][:n]
	sum := sha256.Sum256(raw)
	return raw, hex.EncodeToString(sum[:]) == string(lines[1])
}

// state is the newest checkpoint that is remembered beside keys.
type state struct {
	Head
	raw     []byte
	isKnown bool // one of the files can be read
}

// readStates reads what is remembered beside keys, as far as one of these has signed it.
func readStates(files []string, keys Keys) (s state, err error) {
	for _, file := range files {
		f, _, err := segment.OpenRegular(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return state{}, err
		}
		text, err := atmost.ReadAndClose(f, 2*stateSlot)
		if err != nil {
			return state{}, err
		}
		for ; len(text) > 0; text = text[min(len(text), stateSlot):] {
			raw, ok := parseState(text[:min(len(text), stateSlot)])
			if !ok {
				continue
			}
			if len(raw) == 0 {
				s.isKnown = true
				continue
			}
			c, err := keys.Open(raw)
			if err != nil { // by a key that was replaced
				continue
			}
			if s.isKnown = true; c.Size > s.Size {
				s.Head, s.raw = c.Head, bytes.Clone(raw)
			}
		}
	}
	return s, nil
}

// stateFiles remember the last checkpoint of a log. The first failure is reported, and the log goes on without them.
type stateFiles struct {
	files []*os.File
	slot  int64
	err   error // that was told
	tell  func(error)
}

// openStates makes the files that are missing, and writes the checkpoint to them, none for a log of which nothing is signed.
func openStates(paths []string, raw []byte, tell func(error)) *stateFiles {
	s := &stateFiles{tell: tell}
	for _, path := range paths {
		f, err := openState(path)
		if err != nil {
			s.failed(err)
			continue
		}
		s.files = append(s.files, f)
	}
	for range 2 { // both slots: what they remember of another log counts no more
		s.write(raw)
		s.sync()
	}
	return s
}

func openState(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f, err := winsvc.CreatePrivate(path)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(f.Close(), atomicfile.SyncDir(filepath.Dir(path))); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %w", path, segment.ErrNotRegular)
	}
	return os.OpenFile(path, os.O_RDWR, 0) // #nosec G304 -- beside the key, which the operator names
}

// write remembers a checkpoint. It does not wait for the disk: after a loss of power the one before may be there, which says less and nothing wrong.
func (s *stateFiles) write(raw []byte) {
	text, err := formatState(raw)
	for _, f := range s.files {
		if err == nil {
			_, err = f.WriteAt(text, s.slot*stateSlot)
		}
	}
	s.slot = 1 - s.slot
	s.failed(err)
}

func (s *stateFiles) sync() {
	for _, f := range s.files {
		s.failed(f.Sync())
	}
}

func (s *stateFiles) failed(err error) {
	if err != nil && s.err == nil {
		s.err = err
		s.tell(fmt.Errorf("remember the last audit checkpoint beside the key: %w", err))
	}
}

func (s *stateFiles) close() error {
	s.sync()
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	s.files = nil
	return errors.Join(errs...)
}
