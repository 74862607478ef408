package segment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// Writer writes the records of many callers to a log of segments. One goroutine owns the file: while it flushes, what arrives
// waits, and goes with the next flush.
type Writer struct {
	log      *log
	pendings sync.Pool // of *pending

	mu     sync.Mutex // guards the fields below
	queue  []*pending
	closed bool

	wake    chan struct{} // something is in the queue, or the Writer was closed
	stopped chan struct{} // the goroutines have ended
	stop    context.CancelFunc
	err     error // of closing, once stopped
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
	l := &log{options: o, disk: disk, session: rand.Text(), open: map[string]uint64{}, cause: audit.CauseStart, early: make(chan struct{}, 1)}
	if err := l.start(ctx); err != nil {
		return nil, err
	}
	signing, stop := context.WithCancel(context.Background())
	w := &Writer{log: l, wake: make(chan struct{}, 1), stopped: make(chan struct{}), stop: stop}
	var running sync.WaitGroup
	running.Go(w.run)
	running.Go(func() { l.sign(signing) })
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
		p = &pending{done: make(chan struct{}, 1)}
	}
	p.event, p.class, p.tried, p.seq = *event, asRecorded, false, 0
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
	if !w.submit(p) {
		return 0, fmt.Errorf("append to audit log: %w", fs.ErrClosed)
	}
	<-p.done
	if p.err != nil {
		return p.seq, fmt.Errorf("append to audit log: %w", p.err)
	}
	return p.seq, nil
}

func (w *Writer) submit(p *pending) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.queue = append(w.queue, p)
	if len(w.queue) == 1 {
		periodic.Signal(w.wake)
	}
	return true
}

// run is the goroutine that owns the log.
func (w *Writer) run() {
	clock := time.NewTicker(tick)
	defer clock.Stop()
	var waiting []*pending
	for {
		select {
		case <-w.wake:
		case err := <-w.log.isReady(): // not at the next tick: many segments can be filled in a second
			w.log.goOn(err)
		case <-clock.C:
			w.log.look()
		}
		runtime.Gosched() // callers that the last flush woke and that are back already join this one
		w.mu.Lock()
		waiting, w.queue = w.queue, waiting[:0]
		closed := w.closed
		w.mu.Unlock()
		for rest := waiting; len(rest) > 0; {
			n := batchLen(rest)
			w.log.commit(rest[:n:n])
			rest = rest[n:]
		}
		clear(waiting)
		if closed {
			w.err = w.log.close()
			w.stop()
			return
		}
	}
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
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	periodic.Signal(w.wake)
	<-w.stopped
	return w.err
}
