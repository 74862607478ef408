package evidence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// ErrRolledBack means that a log is shorter than a checkpoint that it signed, or another one. To sign a checkpoint of it would contradict the first.
var ErrRolledBack = errors.New("the audit log is not the one that its last checkpoint was signed of")

// list sorts the segments in a directory.
func (w *walk) list(dir string) (first uint64, err error) {
	segments, _, err := listSegments(dir)
	if err != nil {
		return 0, err
	}
	if w.isOwn { // a writer packs nothing
		segments = slices.DeleteFunc(segments, func(s Segment) bool { return s.name() != filepath.Base(s.Path) })
	}
	return w.sort(segments)
}

// replay reads the log in dir, of which covered records are known to have been durable, and calls each with the tree as it is before each
// record is added and at the end, until each returns false. Begin, if it is not nil, is told before of the first record that is there, 0 for
// none, and of the tree of those that were pruned.
func replay(ctx context.Context, dir string, covered uint64, begin func(first uint64, start span) error, each func(tree *span) bool) (span, error) {
	start, err := readStart(filepath.Join(dir, StartFile))
	if err != nil {
		return span{}, err
	}
	tree := span{}
	w := &walk{isWriter: true, isOwn: true, covered: covered}
	first, err := w.list(dir)
	if err != nil {
		return span{}, err
	}
	if begin != nil {
		if err := begin(first, start); err != nil {
			return span{}, err
		}
	}
	switch {
	case first == 1:
	case first > 0 && start.end < first-1:
		return span{}, &Fault{w.order[0].Path, 0, first, fmt.Sprintf("nothing says what became of records %d to %d", start.end+1, first-1)}
	default:
		tree = start.clone()
	}
	w.visit = func(r *Record) error {
		if r.Seq <= tree.end { // pruning is under way
			return nil
		}
		if r.Seq != tree.end+1 {
			return &Fault{r.File, r.Line, r.Seq, fmt.Sprintf("record %d is due", tree.end+1)}
		}
		if !each(&tree) {
			return errDone
		}
		tree.append(r.Leaf)
		return nil
	}
	if err := w.run(ctx); err != nil && !errors.Is(err, errDone) {
		return span{}, err
	} else if err == nil {
		each(&tree)
	}
	return tree, nil
}

// rebuild reads the log in dir and holds it to the last checkpoint it signed; Size 0 for none. Records up to held are under a signature that was verified.
func rebuild(ctx context.Context, dir string, last Head, held uint64) (span, error) {
	fits := last.Size == 0
	begin := func(first uint64, start span) error {
		if isUnheld(first, start, held) {
			return &Fault{filepath.Join(dir, StartFile), 0, first, unheld(first, start, held)}
		}
		return nil
	}
	tree, err := replay(ctx, dir, last.Size, begin, func(tree *span) bool {
		if tree.end == last.Size {
			fits = fits || tree.root() == last.Root
		}
		return true
	})
	if err != nil {
		return span{}, err
	}
	if !fits {
		return span{}, fmt.Errorf("%s: %w: %d records, signed were %d", dir, ErrRolledBack, tree.end, last.Size)
	}
	return tree, nil
}

// isUnheld says whether nothing holds the records that are there and that the tree of the pruned ones covers already. They are not added to
// it, so only the hash in the record behind them does, and that record must be signed. Whoever can read a log can write down its tree, and
// other records before it. A log that is being pruned is signed further than its tree before that is written.
func isUnheld(first uint64, start span, held uint64) bool {
	return first != 1 && first <= start.end && start.end > 0 && (first == 0 || held <= start.end)
}

func unheld(first uint64, start span, held uint64) string {
	if first == 0 {
		return fmt.Sprintf("it is the tree of %d records, and no record is there", start.end)
	}
	return fmt.Sprintf("it is the tree of %d records, of which those from %d on are there, and they are held by no checkpoint of more: the last one is of %d", start.end, first, held)
}

// LastCheckpoint returns the newest checkpoint in a log's own file, unverified, and a Size of 0 if there is none: what the writer of segments
// wants to know before it takes a damaged end for the work of a crash.
func LastCheckpoint(dir string) (Head, error) {
	f, _, err := openRegular(filepath.Join(dir, CheckpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Head{}, nil
	}
	if err != nil {
		return Head{}, fmt.Errorf("last audit checkpoint: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	var last []byte
	for n, err := range Notes(f) {
		var bad *NoteError
		if errors.As(err, &bad) && bad.Torn || n.IsOpen {
			break
		}
		if err != nil {
			return Head{}, fmt.Errorf("last audit checkpoint: %w", err)
		}
		last = n.Raw
	}
	if last == nil {
		return Head{}, nil
	}
	return Inspect(last)
}

// spanOf reads the log in dir for the tree of its first from records and the leaves from there up to another size.
func spanOf(ctx context.Context, dir string, from, to uint64) (before, after span, err error) {
	hasBefore := false
	tree, err := replay(ctx, dir, to, nil, func(tree *span) bool {
		if tree.end == from {
			before, hasBefore = tree.clone(), true
		}
		return tree.end < from
	})
	if err != nil {
		return span{}, span{}, err
	}
	if !hasBefore {
		return span{}, span{}, fmt.Errorf("the tree of %d records cannot be known: the log begins behind it, or ends before it with %d", from, tree.end)
	}
	after = span{begin: from, end: from}
	w := &walk{isOwn: true, covered: to, visit: func(r *Record) error {
		switch {
		case r.Seq <= from:
			return nil
		case r.Seq > to:
			return errDone
		}
		after.append(r.Leaf)
		return nil
	}}
	if _, err := w.list(dir); err != nil {
		return span{}, span{}, err
	}
	if err := w.run(ctx); err != nil && !errors.Is(err, errDone) {
		return span{}, span{}, err
	}
	if after.end != to {
		return span{}, span{}, fmt.Errorf("the log has %d records, not %d", after.end, to)
	}
	return before, after, nil
}
