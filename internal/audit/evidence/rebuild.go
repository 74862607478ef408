package evidence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// ErrRolledBack means that a log is shorter than a checkpoint that it signed, or another one. To sign a checkpoint of it would contradict the first.
var ErrRolledBack = errors.New("the audit log does not match its last checkpoint")

// list sorts the segments in a directory.
func (w *walk) list(ctx context.Context, dir string) (first uint64, err error) {
	segments, _, err := segment.List(dir)
	if err != nil {
		return 0, err
	}
	if w.isOwn { // a writer packs nothing
		segments = slices.DeleteFunc(segments, func(s segment.Entry) bool { return s.Given != filepath.Base(s.Path) })
	}
	return w.sort(ctx, segments)
}

// reading is how replay reads a log.
type reading struct {
	// start is the tree of the records that were pruned, if it is known; else it is read.
	start *leafRange
	// covered is how many records are known to have been durable; signed is the checkpoint that the segments of the log are told from others by.
	covered uint64
	signed  Head
	// begin, if it is not nil, is called first with the number of the first record present, 0 for none, and with the tree of the pruned records.
	begin func(first uint64, start leafRange) error
	// claims, if it is not nil, are added to.
	claims *claims
	// each is called with the tree as it is before each record is added and at the end, until it returns false.
	each func(tree *leafRange) bool
}

// replay reads the log in dir.
func replay(ctx context.Context, dir string, r reading) (leafRange, error) {
	start, tree := leafRange{}, leafRange{}
	if r.start != nil {
		start = *r.start
	} else {
		var err error
		if start, err = readStart(filepath.Join(dir, StartFile)); err != nil {
			return leafRange{}, err
		}
	}
	w := &walk{isWriter: true, isOwn: true, covered: r.covered, signed: r.signed}
	first, err := w.list(ctx, dir)
	if err != nil {
		return leafRange{}, err
	}
	if r.begin != nil {
		if err := r.begin(first, start); err != nil {
			return leafRange{}, err
		}
	}
	switch {
	case first == 1:
	case first > 0 && start.end < first-1:
		return leafRange{}, &Fault{w.order[0].Path, 0, first, fmt.Sprintf("nothing accounts for records %d to %d", start.end+1, first-1)}
	default:
		tree = start.clone()
	}
	w.visit = func(rec *Record) error {
		if r.claims != nil {
			r.claims.add(rec)
		}
		if rec.Seq <= tree.end { // pruning is under way
			return nil
		}
		if rec.Seq != tree.end+1 {
			return &Fault{rec.File, rec.Line, rec.Seq, fmt.Sprintf("record %d is due", tree.end+1)}
		}
		if !r.each(&tree) {
			return errDone
		}
		tree.append(rec.Leaf)
		return nil
	}
	if err := w.run(ctx); err != nil && !errors.Is(err, errDone) {
		return leafRange{}, err
	} else if err == nil {
		r.each(&tree)
	}
	return tree, nil
}

// rebuilt is the state of a log, as read from its directory.
type rebuilt struct {
	tree    leafRange
	start   leafRange // the tree of the records that were pruned
	removed uint64    // the last of these that the log says was removed
}

// rebuild reads the log in dir and compares it with what is known to be signed of it.
func rebuild(ctx context.Context, dir string, k known) (b rebuilt, err error) {
	fits, due, gone := 0, 0, uint64(0)
	r := reading{covered: k.Size, signed: k.Head, claims: &claims{}}
	r.begin = func(first uint64, s leafRange) error {
		if isUnheld(first, s, k.held) {
			return &Fault{filepath.Join(dir, StartFile), 0, first, unheld(first, s, k.held)}
		}
		if first > 0 && !k.isTrusted {
			return &Fault{filepath.Join(dir, CheckpointFile), 0, 0, "it holds no checkpoint signed by the log's key, and no checkpoint is remembered beside the key: the file was removed or replaced, or the key was, without audit.signing.old"}
		}
		gone = max(first, 1) - 1
		if first != 1 { // else nothing holds it
			b.start = s
		}
		for _, h := range k.heads {
			if first == 1 || h.Size >= s.end || h.Size == k.Size { // of fewer than are gone, nothing can be said beside a newer one
				due++
			}
		}
		return nil
	}
	r.each = func(tree *leafRange) bool {
		for _, h := range k.heads {
			if tree.end == h.Size && tree.root() == h.Root {
				fits++
			}
		}
		return true
	}
	if b.tree, err = replay(ctx, dir, r); err != nil {
		return rebuilt{}, err
	}
	if fits < due {
		return rebuilt{}, fmt.Errorf("%s: %w: %d records, of which %d were signed", dir, ErrRolledBack, b.tree.end, k.Size)
	}
	pruned := r.claims.pruned(k.held)
	if pruned < gone {
		return rebuilt{}, &Fault{filepath.Join(dir, StartFile), 0, pruned + 1, fmt.Sprintf("records %d to %d are gone, and no LogPrune record that its own process signed says that they were removed", pruned+1, gone)}
	}
	b.removed = min(pruned, b.start.end)
	return b, nil
}

// known is what is known to have been signed of a log.
type known struct {
	Head         // the checkpoint of most records; unverified only where nothing is remembered beside keys
	heads []Head // that the log must fit
	held  uint64 // records under a checkpoint that was verified
	// isTrusted says that there is one, or that the key has signed nothing yet, or that nothing is remembered beside keys.
	isTrusted bool
	raw       []byte // of the newest verified one
	lacks     bool   // the log's own file lacks that one
	missing   uint64 // records that were signed of a log of which nothing is there
}

// knownOf is what is known of the log in dir from the last checkpoint in its own file, which may be empty, and beside its keys.
func knownOf(dir string, own []byte, states []string, keys Keys) (k known, err error) {
	if own != nil {
		h, err := Inspect(own)
		if err != nil {
			return known{}, &Fault{filepath.Join(dir, CheckpointFile), 0, 0, "its last checkpoint cannot be read (" + err.Error() + "): the file was changed"}
		}
		k.Head, k.heads = h, []Head{h}
		c, err := keys.Open(own)
		switch {
		case err == nil:
			k.held, k.raw = c.Size, own
		case len(states) > 0 && len(keys.all) > 0: // without the key, one can be written that fits records which were added
			return known{}, &Fault{filepath.Join(dir, CheckpointFile), 0, 0, "its last checkpoint is not signed by the log's key: it was added, or the key was exchanged without audit.signing.old"}
		}
	}
	s, err := readStates(states, keys)
	if err != nil {
		return known{}, fmt.Errorf("what was signed for the audit log: %w", err)
	}
	if err := k.heldByNewest(dir, own, states, keys); err != nil {
		return known{}, err
	}
	if s.Size > 0 && own == nil {
		segments, _, err := segment.List(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return known{}, err
		}
		if len(segments) == 0 { // it was moved away, or removed
			return known{isTrusted: true, missing: s.Size}, nil
		}
	}
	k.isTrusted = len(states) == 0 || s.isKnown || k.held > 0
	if s.Size == 0 {
		return k, nil
	}
	k.heads = append(k.heads, s.Head)
	if k.lacks = s.Size > k.Size; k.lacks {
		k.Head = s.Head
	}
	if s.Size > k.held {
		k.held, k.raw = s.Size, s.raw
	}
	return k, nil
}

// heldByNewest refuses a last checkpoint that only the old key of a rotation signed, if it is of more records than the new key, the last one, is known to have
// signed: since the new key signs, both sign each checkpoint, and the old key may have leaked. One of fewer records takes nothing over: the file was cut back, or
// lines of signatures were, which needs no key, and the missing checkpoint is restored.
func (k *known) heldByNewest(dir string, own []byte, states []string, keys Keys) error {
	if own == nil || len(keys.all) < 2 || k.held == 0 {
		return nil
	}
	newest := Keys{keys.all[len(keys.all)-1:]}
	if _, err := newest.Open(own); err == nil {
		return nil
	}
	s, err := readStates(states, newest)
	if err != nil {
		return fmt.Errorf("what was signed for the audit log: %w", err)
	}
	if s.Size == 0 || k.held <= s.Size {
		return nil
	}
	return &Fault{filepath.Join(dir, CheckpointFile), 0, 0, fmt.Sprintf("its last checkpoint is signed by the key audit.signing.old alone, and the new key has signed %d records: it was added, or the configuration went back to the old key for a while; a new key must take over then", s.Size)}
}

// Last is what was signed last of a log.
type Last struct {
	// Head is the checkpoint of most records, with a Size of 0 if there is none.
	Head
	// Missing is how many records were signed of a log of which nothing is there any more.
	Missing uint64
}

// LastSigned returns what was signed last of the log in dir: what the writer of segments wants to know before it takes a damaged end for the work
// of a crash. What the log's own file says is not verified, what is remembered beside the keys is.
func LastSigned(dir string, keys []*Key, states []string) (Last, error) {
	own, err := lastNote(dir)
	if err != nil {
		return Last{}, err
	}
	k, err := knownOf(dir, own, states, keysOfAll(keys))
	return Last{k.Head, k.missing}, err
}

// isUnheld says whether nothing holds the records that are there and that the tree of the pruned ones covers already. They are not added to
// it, so only the hash in the record behind them does, and that record must be signed. Any reader of a log can compute its tree, and
// write other records before it. A log that is being pruned is signed further than its tree before that is written.
func isUnheld(first uint64, start leafRange, held uint64) bool {
	return first != 1 && first <= start.end && start.end > 0 && (first == 0 || held <= start.end)
}

func unheld(first uint64, start leafRange, held uint64) string {
	if first == 0 {
		return fmt.Sprintf("it is the tree of %d records, but the log has no record", start.end)
	}
	return fmt.Sprintf("it is the tree of %d records, of which those from %d on are still present, and no checkpoint of more records covers them: the last one covers %d", start.end, first, held)
}

// lastNote is the last one in a log's own file, nil if there is none.
func lastNote(dir string) ([]byte, error) {
	f, _, err := openRegular(filepath.Join(dir, CheckpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("last audit checkpoint: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	var last []byte
	for n, err := range Notes(f) {
		if isTorn(err) || n.IsOpen {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("last audit checkpoint: %s: %w", f.Name(), err)
		}
		last = n.Raw
	}
	return last, nil
}

// leafRangeOf reads the log in dir, of which a checkpoint was signed, for the tree of its first from records and the leaves from there up to another size.
func leafRangeOf(ctx context.Context, dir string, signed Head, from, to uint64) (before, after leafRange, err error) {
	hasBefore := false
	tree, err := replay(ctx, dir, reading{covered: to, signed: signed, each: func(tree *leafRange) bool {
		if tree.end == from {
			before, hasBefore = tree.clone(), true
		}
		return tree.end < from
	}})
	if err != nil {
		return leafRange{}, leafRange{}, err
	}
	if !hasBefore {
		return leafRange{}, leafRange{}, fmt.Errorf("the tree of %d records cannot be known: the log begins behind it, or ends before it with %d", from, tree.end)
	}
	after, err = leavesOf(ctx, dir, signed, from, to)
	return before, after, err
}

// leavesOf reads the leaves behind from up to another size of the log in dir, of which a checkpoint was signed.
func leavesOf(ctx context.Context, dir string, signed Head, from, to uint64) (after leafRange, err error) {
	after = leafRange{begin: from, end: from}
	w := &walk{isOwn: true, covered: to, signed: signed, visit: func(r *Record) error {
		switch {
		case r.Seq <= from:
			return nil
		case r.Seq > to:
			return errDone
		}
		after.append(r.Leaf)
		return nil
	}}
	if _, err := w.list(ctx, dir); err != nil {
		return leafRange{}, err
	}
	if err := w.run(ctx); err != nil && !errors.Is(err, errDone) {
		return leafRange{}, err
	}
	if after.end != to {
		return leafRange{}, fmt.Errorf("the log has %d records, not %d", after.end, to)
	}
	return after, nil
}
