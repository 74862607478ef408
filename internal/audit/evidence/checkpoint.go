package evidence

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Head is the state of a log: how many records it has, and the root of the tree over them.
type Head struct {
	Origin string
	Size   uint64
	Root   tlog.Hash
}

// text is the text of a checkpoint. https://c2sp.org/tlog-checkpoint
func (h Head) text() string { return fmt.Sprintf("%s\n%d\n%s\n", h.Origin, h.Size, h.Root) }

// Checkpoint is a head that a known key of the log signed.
type Checkpoint struct {
	Head
	// rank is the position, from 1, of the newest of the log's keys that signed, and by is its id.
	rank int
	by   uint32
	// SignedAt is the time that the log signed with this key, zero if it signed none.
	SignedAt time.Time
	// Witnesses are those with a valid cosignature.
	Witnesses []Witnessed
	Raw       []byte
}

// Witnessed is a witness's statement that at a time the head was the newest it had seen, and that it extends the head before.
type Witnessed struct {
	Name string
	At   time.Time
}

// Faults of checkpoints.
var (
	ErrCheckpoint = errors.New("not a checkpoint")
	// ErrUnsigned means that none of the known keys of the log signed. A witness's signature alone is not enough: it only confirms what the log has signed.
	ErrUnsigned = errors.New("not signed by any given key of the log")
	// ErrSignature means that a known key's signature is wrong.
	ErrSignature = errors.New("bad signature")
)

// maxNote bounds one checkpoint with its signatures, in bytes: some hundred cosignatures.
const maxNote = 16 << 10

// sign makes the note of a head: signed by each key as the log, and by each for the time.
func sign(h Head, at time.Time, keys ...*Key) ([]byte, error) {
	var signers []note.Signer
	for _, k := range keys {
		signers = append(signers, signer{k, algLog, at}, signer{k, algCosign, at})
	}
	raw, err := note.Sign(&note.Note{Text: h.text()}, signers...)
	if err != nil {
		return nil, fmt.Errorf("sign checkpoint of %d records: %w", h.Size, err)
	}
	return raw, nil
}

// ParseHead reads the text of a checkpoint strictly: a head has exactly one text, except for extension lines, which are ignored.
func ParseHead(text string) (Head, error) {
	body, whole := strings.CutSuffix(text, "\n")
	lines := strings.Split(body, "\n")
	if !whole || len(lines) < 3 {
		return Head{}, fmt.Errorf("%w: fewer than three lines", ErrCheckpoint)
	}
	for _, l := range lines {
		if l == "" {
			return Head{}, fmt.Errorf("%w: an empty line", ErrCheckpoint)
		}
	}
	size, ok := parseNumber(lines[1])
	if !ok || size > MaxSize {
		return Head{}, fmt.Errorf("%w: the second line is not a tree size", ErrCheckpoint)
	}
	root, err := parseHash(lines[2])
	if err != nil {
		return Head{}, fmt.Errorf("%w: the third line is not a root hash", ErrCheckpoint)
	}
	return Head{lines[0], size, root}, nil
}

// parseHash reads base64 as tlog.Hash writes it, and no other form of the same bytes.
func parseHash(s string) (tlog.Hash, error) {
	h, err := tlog.ParseHash(s)
	if err != nil || h.String() != s {
		return tlog.Hash{}, errors.New("not a hash in base64")
	}
	return h, nil
}

// parseHashes reads one hash a line, each of which ends.
func parseHashes(text string) (all []tlog.Hash, err error) {
	for l := range strings.Lines(text) {
		h, err := parseHash(strings.TrimSuffix(l, "\n"))
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, nil
}

// appendHashes is the inverse of parseHashes.
func appendHashes(out []byte, hashes []tlog.Hash) []byte {
	for _, h := range hashes {
		out = fmt.Appendf(out, "%s\n", h)
	}
	return out
}

// Inspect returns the head of a checkpoint without verifying any signature.
func Inspect(raw []byte) (Head, error) {
	if len(raw) > maxNote {
		return Head{}, fmt.Errorf("%w: longer than %d bytes", ErrCheckpoint, maxNote)
	}
	n, err := unverified(raw)
	if err != nil {
		return Head{}, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	for _, s := range n.UnverifiedSigs {
		if _, err := base64.StdEncoding.Strict().DecodeString(s.Base64); err != nil {
			return Head{}, fmt.Errorf("%w: a signature has padding bits that are not zero", ErrCheckpoint)
		}
	}
	return ParseHead(n.Text)
}

// unverified reads a signed note without verifying a signature.
func unverified(raw []byte) (*note.Note, error) {
	_, err := note.Open(raw, nil)
	if e, ok := errors.AsType[*note.UnverifiedNoteError](err); ok {
		return e.Note, nil
	}
	return nil, err
}

// Open verifies a checkpoint: every signature by a key that is known must be good, and there must be one by a key of the checkpoint's own origin. Else it is
// ErrUnsigned.
func (k Keys) Open(raw []byte) (Checkpoint, error) {
	c, err := k.open(raw)
	if err == nil && c.rank == 0 {
		return Checkpoint{Head: c.Head, Raw: raw}, fmt.Errorf("%w (witnesses: %d)", ErrUnsigned, len(c.Witnesses))
	}
	return c, err
}

// open verifies a checkpoint like Open, also if a witness alone has signed it. Its rank is 0 then.
func (k Keys) open(raw []byte) (Checkpoint, error) {
	head, err := Inspect(raw)
	if err != nil {
		return Checkpoint{}, err
	}
	n, err := note.Open(raw, k.of(head.Origin))
	var unsigned *note.UnverifiedNoteError
	var invalid *note.InvalidSignatureError
	switch {
	case errors.As(err, &unsigned):
		return Checkpoint{Head: head, Raw: raw}, fmt.Errorf("%w (%s)", ErrUnsigned, signers(unsigned.Note.UnverifiedSigs))
	case errors.As(err, &invalid):
		return Checkpoint{Head: head}, fmt.Errorf("%w by key %s+%08x", ErrSignature, invalid.Name, invalid.Hash)
	case err != nil:
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	c := Checkpoint{Head: head, Raw: raw}
	times := map[int]time.Time{} // by the key's rank: a replaced key's time does not count for the signature of another
	for _, s := range n.Sigs {
		at, timed := signedAt(s)
		switch {
		case s.Name != head.Origin:
			c.Witnesses = append(c.Witnesses, Witnessed{s.Name, at})
		case !timed: // a signature that is 64 bytes long, the plain one
			if rank := k.rank(s.Name, s.Hash); rank > c.rank {
				c.rank, c.by = rank, s.Hash
			}
		default:
			times[k.rank(s.Name, s.Hash)] = at
		}
	}
	c.SignedAt = times[c.rank]
	return c, nil
}

// isNewer says whether a checkpoint supersedes one of the same size: a later key signed it, or the same key at a later time.
func (c Checkpoint) isNewer(than Checkpoint) bool {
	if c.rank != than.rank {
		return c.rank > than.rank
	}
	return c.SignedAt.After(than.SignedAt)
}

// doubled names a known key of which a checkpoint has different signatures; Open looks at the first of them alone.
func (k Keys) doubled(origin string, raw []byte) string {
	n, err := unverified(raw)
	if err != nil {
		return ""
	}
	known, seen := k.of(origin), map[string]bool{}
	for _, s := range n.UnverifiedSigs {
		if _, err := known.Verifier(s.Name, s.Hash); err != nil {
			continue
		}
		key := fmt.Sprintf("%s+%08x", s.Name, s.Hash)
		if seen[key] {
			return key
		}
		seen[key] = true
	}
	return ""
}

// signers names the keys of signatures for an error.
func signers(sigs []note.Signature) string {
	var names []string
	for _, s := range sigs {
		if len(names) == 4 {
			names = append(names, "…")
			break
		}
		names = append(names, fmt.Sprintf("%s+%08x", s.Name, s.Hash))
	}
	return "signed by " + strings.Join(names, ", ")
}
