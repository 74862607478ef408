package segment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Writer writes the records of many callers to a log of segments. One goroutine at a time owns the log, see turns.
type Writer struct {
	log      *log
	pendings sync.Pool // of *pending
	turns    turns

	closing context.CancelFunc // tells the keeper
	stopped chan struct{}      // the goroutines have ended
	err     error              // of closing, once stopped
}

var _ audit.Writer = (*Writer)(nil)

// tick is how often the Writer looks at the clock.
const tick = time.Second

// Open takes the directory at path, closes what an earlier process left open there, and begins a segment. The directory is made if it is
// missing, and made private. ErrInUse means that it has a writer. ctx ends the reading of what is there, however long it is; what is open
// stays so until Close.
func Open(ctx context.Context, path string, o Options) (*Writer, error) {
	disk, err := openDirectory(path)
	if err != nil {
		return nil, fmt.Errorf("open audit log %s: %w", path, err)
	}
	w, err := OpenDisk(ctx, disk, o)
	if err != nil {
		return nil, fmt.Errorf("open audit log %s: %w", path, errors.Join(err, disk.Close()))
	}
	return w, nil
}

// OpenDisk is Open for a directory that is taken already. The Writer closes it; after an error it is left open.
func OpenDisk(ctx context.Context, disk Disk, o Options) (*Writer, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	l := &log{options: o, disk: disk, session: rand.Text(), open: map[string]uint64{}, cause: audit.CauseStart, early: make(chan struct{}, 1), ready: make(chan error, 1)}
	if err := l.start(ctx); err != nil {
		return nil, err
	}
	open, closing := context.WithCancel(context.Background())
	w := &Writer{log: l, turns: turns{keeper: make(chan struct{}, 1)}, closing: closing, stopped: make(chan struct{})}
	signing, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { l.sign(signing) })
	running.Go(func() {
		w.keep(open)
		stop()
	})
	go func() {
		running.Wait()
		close(w.stopped)
	}()
	return w, nil
}

// Append implements audit.Writer. It does not wait for ctx, but refuses one that has already ended.
// Errors of the disk are ErrUnavailable; after Close, fs.ErrClosed.
func (w *Writer) Append(ctx context.Context, event *audit.Event) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("append to audit log: %w", err)
	}
	p, ok := w.pendings.Get().(*pending)
	if !ok {
		p = &pending{told: make(chan news, 1)}
	}
	p.event, p.class, p.tried, p.seq, p.err = *event, asRecorded, false, 0, ErrUnavailable // until it is decided
	if c, ok := ctx.Value(classKey{}).(class); ok {
		p.class = c
	}
	defer func() {
		p.event = audit.Event{}
		w.pendings.Put(p)
	}()
	if err := p.encode(w.log.session, w.log.options.Now); err != nil {
		return 0, fmt.Errorf("append to audit log: %w", err)
	}
	isLeader, isOpen := w.turns.join(p)
	if !isOpen {
		return 0, fmt.Errorf("append to audit log: %w", fs.ErrClosed)
	}
	if isLeader || <-p.told == leads {
		w.lead(p)
	}
	if p.err != nil {
		return p.seq, fmt.Errorf("append to audit log: %w", p.err)
	}
	return p.seq, nil
}

// lead writes the records of those who wait, p with the first of them, hands the log on, and wakes them.
func (w *Writer) lead(p *pending) {
	defer endIfPanicking()
	runtime.Gosched() // callers that the last flush woke and that are back already join this one
	p.batch = w.turns.take(p.batch[:0])
	w.log.commit(p.batch)
	w.turns.handOn()
	for _, other := range p.batch {
		if other != p {
			other.told <- isDecided
		}
	}
	clear(p.batch)
}

// endIfPanicking ends the process: what is in the log is not known, and a server that recovers from panics of its handlers would serve on.
func endIfPanicking() {
	if v := recover(); v != nil {
		text := fmt.Sprintf("audit log: %v\n%s", v, debug.Stack())
		go panic(text)
		select {}
	}
}

// keep does what no caller is there for, until the Writer is closed, and closes the log.
func (w *Writer) keep(open context.Context) {
	clock := time.NewTicker(tick)
	defer clock.Stop()
	for open.Err() == nil {
		select {
		case <-open.Done():
		case err := <-w.log.ready: // not at the next tick: many segments can be filled in a second
			w.turns.own(func() { w.log.goOn(err) })
		case <-clock.C:
			w.turns.own(w.log.look)
		}
	}
	w.turns.own(func() { w.err = w.log.close() })
}

// batchLen is how many records go with one flush.
func batchLen(queue []*pending) int {
	size := 0
	for i, p := range queue {
		if size += len(p.line); size > maxBatch {
			return max(1, i)
		}
	}
	return len(queue)
}

// Stats are the figures of the log.
func (w *Writer) Stats() Stats {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	return w.log.stats
}

// Missing says how many requests have ended without a record, for the last record of the log to say. It is called before Close, and
// the last number counts.
func (w *Writer) Missing(n uint64) { w.log.unwritten.Store(n) }

// Close writes what is waiting and the last record of the segment, signs, and lets the directory go. Later calls of Append return fs.ErrClosed.
func (w *Writer) Close() error {
	w.turns.close()
	w.closing()
	<-w.stopped
	return w.err
}
