package evidence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// Options configure the checkpoints of a log.
type Options struct {
	// Dir is the log. Checkpoints are kept in it, which helps those who copy the log and proves little: see Sinks.
	Dir string
	// Keys sign, all of them: one, or in a rotation the new one and then the old one. They have the same name, the log's origin.
	Keys []*Key
	// States are files beside the keys, out of reach of accounts that can write to Dir alone. Each remembers the last checkpoint, so that the log goes on from
	// that one although those in Dir were removed. Without any, a log without checkpoints is taken for a new one.
	States []string
	// Grown is a file beside the keys in which the log keeps what proves to a witness how it grew; empty for none.
	Grown string
	// Sinks are given a copy of every checkpoint. Only what is out of reach of this machine's administrators contradicts a rollback.
	Sinks []Sink
	// Prunes says that records are removed from the log: the space that takes is kept, so that it works on a full disk.
	Prunes bool
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// OnFault receives the errors of sinks and of checkpoints that do not stop the log. It may be called by several goroutines. Nil ignores them.
	OnFault func(error)
}

func (o *Options) complete() error {
	var faults []error
	if o.Dir == "" {
		faults = append(faults, errors.New("no directory"))
	}
	if len(o.Keys) == 0 {
		faults = append(faults, errors.New("no key"))
	}
	for _, k := range o.Keys {
		if k == nil || k.name != o.Keys[0].name {
			faults = append(faults, errors.New("the keys have different names"))
			break
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OnFault == nil {
		o.OnFault = func(error) {}
	}
	return errors.Join(faults...)
}

// keysOfAll are the public halves of keys, the oldest first.
func keysOfAll(private []*Key) Keys {
	var keys Keys
	for _, k := range slices.Backward(private) {
		keys.all = append(keys.all, k.verifier(algLog))
	}
	return keys
}

// Log is the tree over a log that is being written. Its memory does not grow with the log. All methods may be called by many goroutines.
type Log struct {
	o Options

	mu      sync.Mutex // guards the tree; held for microseconds, so that Append never waits for a disk
	tree    leafRange
	history treeHistory
	// cosigned is how many records the witness cosigned last, 0 if that is not known.
	cosigned  uint64
	isUngrown bool // what proves the growth from there could not be kept, which was told

	growing sync.Mutex // guards the file Grown

	signing sync.Mutex // guards the fields below, and keeps checkpoints in order
	notes   *noteFile
	states  *stateFiles
	signed  Head // the last checkpoint
	thinned time.Time
	start   leafRange // the tree of the records that were removed, or are about to be
	removed uint64
	closed  bool

	spare spare

	workers []*sinkWorker
	stop    context.CancelFunc
}

// Open reads the log in o.Dir, which may be empty, and continues its tree. It refuses with ErrRolledBack to continue a log that is not the one of which
// its last checkpoint was signed, and with a *Fault one whose records do not fit. The log must not be written to meanwhile.
func Open(ctx context.Context, o Options) (*Log, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("audit evidence: %w", err)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("audit evidence: %w", err)
	}
	notes := &noteFile{path: filepath.Join(o.Dir, CheckpointFile)}
	l := &Log{o: o, thinned: o.Now(), notes: notes, spare: spare{path: filepath.Join(o.Dir, StartFile)}}
	raw, err := notes.thin(o.Now())
	if err != nil {
		return nil, fmt.Errorf("audit evidence: %w", err)
	}
	if notes.strange > 0 {
		o.OnFault(fmt.Errorf("%w: %d entries of %s look like checkpoints and are not; a verification names the first", ErrCheckpointsStrange, notes.strange, notes.path))
	}
	last, err := knownOf(o.Dir, raw, o.States, keysOfAll(o.Keys))
	if err == nil && last.Size > 0 && last.Origin != o.Keys[0].name {
		err = fmt.Errorf("the last checkpoint in %s names the log %q, and the key belongs to %q", o.Dir, last.Origin, o.Keys[0].name)
	}
	if err == nil {
		var found rebuilt
		found, err = rebuild(ctx, o.Dir, last)
		l.tree, l.start, l.removed = found.tree, found.start, found.removed
	}
	if err == nil && last.lacks {
		o.OnFault(fmt.Errorf("%w: the key has signed %d records, and the last checkpoint there covers %d", ErrCheckpointsGone, last.Size, sizeOf(raw)))
		err = l.notes.append(last.raw, o.Now())
	}
	if err != nil {
		return nil, fmt.Errorf("audit evidence: %w", errors.Join(err, notes.close()))
	}
	if last.missing > 0 {
		o.OnFault(fmt.Errorf("%w, with all of its records: the key has signed %d of them, and a new log begins", ErrCheckpointsGone, last.missing))
	}
	if g, err := readGrown(o.Grown); err == nil && g.before.end <= last.Size {
		l.cosigned = g.before.end
	}
	l.states = openStates(o.States, last.raw, o.OnFault)
	l.signed = last.Head
	if o.Prunes {
		l.spare.keep()
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	for _, s := range o.Sinks {
		c := newSinkWorker(s, o.OnFault)
		l.workers = append(l.workers, c)
		go c.run(running)
	}
	return l, nil
}

// Removed is the number of the last record that a signed LogPrune record named as removed when the log was opened.
func (l *Log) Removed() uint64 { return l.removed }

// Append adds the leaf hash of a record that is durable.
func (l *Log) Append(leaf [32]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tree.append(leaf)
	l.history.grow(leaf)
}

// Root returns the number of records and the root of the tree over them.
func (l *Log) Root() (size uint64, root [32]byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tree.end, l.tree.root(), nil
}

// Checkpoint signs the current tree, stores the checkpoint, and gives copies to the sinks without waiting for them.
func (l *Log) Checkpoint(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("audit checkpoint: %w", err)
	}
	l.signing.Lock()
	defer l.signing.Unlock()
	return errors.Join(l.checkpoint(false), l.keepStart())
}

// checkpoint makes one. l.signing must be held.
func (l *Log) checkpoint(isLast bool) error {
	if l.closed {
		return fmt.Errorf("audit checkpoint: %w", os.ErrClosed)
	}
	l.mu.Lock()
	head := Head{l.o.Keys[0].name, l.tree.end, l.tree.root()}
	if len(l.workers) > 0 {
		l.history.append(l.tree)
	}
	l.mu.Unlock()
	if head.Size == 0 {
		return nil
	}
	now := l.o.Now()
	raw, err := sign(head, now, l.o.Keys...)
	if err != nil {
		return err
	}
	if now.Sub(l.thinned) >= keepAll {
		l.thinned = now
		if _, err := l.notes.thin(now); err != nil {
			l.o.OnFault(fmt.Errorf("thin %s: %w", l.notes.path, err))
		}
	}
	if err := l.notes.append(raw, now); err != nil {
		return fmt.Errorf("audit checkpoint of %d records: %w", head.Size, err)
	}
	l.states.write(raw)
	l.signed = head
	if l.o.Prunes && !isLast {
		l.spare.keep()
	}
	for _, c := range l.workers {
		c.give(Copy{head, raw, isLast, func(ctx context.Context, old uint64) (tlog.TreeProof, error) { return l.prove(ctx, old, head) }, func() { l.wasCosigned(head) }})
	}
	return nil
}

// prove returns the consistency proof from a size to a checkpoint.
func (l *Log) prove(ctx context.Context, old uint64, head Head) (tlog.TreeProof, error) {
	size := head.Size
	if old > size {
		return nil, fmt.Errorf("prove growth from %d records to %d", old, size)
	}
	if old == 0 || old == size {
		return nil, nil
	}
	g, err := l.since(ctx, old, head)
	if err != nil {
		return nil, fmt.Errorf("prove growth from %d records to %d: %w", old, size, err)
	}
	return proveGrowth(g.before, g.after)
}

// Close makes a last checkpoint and waits until the sinks have taken it or ctx is done. No records may be appended any more.
func (l *Log) Close(ctx context.Context) error {
	l.signing.Lock()
	defer l.signing.Unlock()
	if l.closed {
		return nil
	}
	err := errors.Join(l.checkpoint(true), l.keepStart())
	l.closed = true
	for _, c := range l.workers {
		close(c.newest)
	}
	for _, c := range l.workers {
		select {
		case <-c.done:
		case <-ctx.Done(): // a sink that observes its context ends too; one that does not is abandoned
			l.stop()
		}
	}
	l.stop()
	return errors.Join(err, l.spare.drop(), l.notes.close(), l.states.close())
}

// sizeOf is the number of records in a checkpoint, 0 without one.
func sizeOf(raw []byte) uint64 {
	h, err := Inspect(raw)
	if err != nil {
		return 0
	}
	return h.Size
}

// Prune writes down the tree of the records up to last, so that the tree of those behind them can be known when they are gone. It reads them.
// Only then may they be removed, oldest segment first.
func (l *Log) Prune(ctx context.Context, last uint64) error {
	l.signing.Lock()
	err := l.keepStart()
	start, signed := l.start, l.signed
	l.signing.Unlock()
	if err != nil || start.end >= last {
		return err
	}
	l.growBehind(ctx, last)
	tree, err := replay(ctx, l.o.Dir, reading{start: &start, covered: last, signed: signed, each: func(tree *leafRange) bool { return tree.end < last }})
	if err == nil && tree.end != last {
		err = fmt.Errorf("the log ends with record %d", tree.end)
	}
	if err == nil {
		err = l.startBehind(tree)
	}
	if err != nil {
		return fmt.Errorf("prune audit log up to record %d: %w", last, err)
	}
	return nil
}

// startBehind has the log start behind the records of a tree. Until these are removed, nothing but a checkpoint of more holds the record behind them.
func (l *Log) startBehind(tree leafRange) error {
	l.signing.Lock()
	defer l.signing.Unlock()
	if l.signed.Size <= tree.end {
		if err := l.checkpoint(false); err != nil {
			return err
		}
	}
	if l.signed.Size <= tree.end {
		return fmt.Errorf("record %d is the last one", l.signed.Size)
	}
	if err := l.replaceStart(tree); err != nil {
		return err
	}
	l.start = tree
	return nil
}

func (l *Log) replaceStart(tree leafRange) error {
	temp, err := l.spare.take()
	if err != nil {
		return err
	}
	return fill(temp, l.spare.path, formatStart(tree))
}

// keepStart puts the start of the log back if it was removed or changed: nothing but this process knows the tree of what is gone. l.signing must be held.
func (l *Log) keepStart() error {
	if l.closed || l.start.end == 0 {
		return nil
	}
	there, err := readStart(filepath.Join(l.o.Dir, StartFile))
	if err == nil && there.end == l.start.end && there.root() == l.start.root() {
		return nil
	}
	if err := l.replaceStart(l.start); err != nil {
		return fmt.Errorf("%w, and cannot be put back: %w", ErrStartChanged, err)
	}
	l.o.OnFault(fmt.Errorf("%w, and was put back", ErrStartChanged))
	return nil
}

// Sinks returns the statistics of each sink.
func (l *Log) Sinks() []SinkStats {
	out := make([]SinkStats, 0, len(l.workers))
	for _, c := range l.workers {
		out = append(out, c.stats())
	}
	return out
}
