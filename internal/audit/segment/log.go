package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// maxBatch bounds what one flush is waited for, in bytes, and so how much of the end of a log a crash can have spoiled.
const maxBatch = 1 << 20

// Errors of a log that takes no records.
var (
	// ErrUnavailable is why an operation must not run, or its end is not in the log. Every error of Append about the disk is one.
	ErrUnavailable = errors.New("audit log unavailable")
	// ErrFull means that no room could be kept for the records of one more operation.
	ErrFull = fmt.Errorf("%w: no space for the records of another operation", ErrUnavailable)
	// ErrRefusals means that a record of a refusal was not taken because refusals hold all the room that is theirs. The log itself works.
	ErrRefusals = fmt.Errorf("%w: no space for another record of a refusal", ErrUnavailable)
	// ErrBusy means that as many operations are under way as room is kept for.
	ErrBusy = fmt.Errorf("%w: too many operations under way", ErrUnavailable)
)

// log is the state of a directory that is written to. One goroutine owns it.
type log struct {
	options Options
	disk    Disk
	session string

	evidence Evidence
	dirty    atomic.Bool // records since the last checkpoint

	// What is durable: the last record, and where it stands.
	seq         uint64
	leaf        [32]byte
	lastSession string // of that record
	at          part   // the segment that holds it, with bytes up to it; no name in an empty log

	// The segment that is open, at; nil while there is none.
	file       File
	next       *created // made for the time after it
	allocated  int64    // how far the disk has room for it
	unreserved bool
	began      time.Time // with the monotonic clock
	here       time.Time // when it was last seen in its directory

	// Why there is none, and when to try again. While there is a segment, when to try to close it.
	cause    string
	fault    string
	err      error
	full     error // why there is no room for another operation in the segment that is open
	retry    time.Time
	void     []string // files since the last segment that hold no record, for the next one to name
	lost     uint64
	unsigned uint64    // of the records that are there, those that no checkpoint covers, for the next segment to say
	looked   time.Time // for what may be removed

	parts         []part     // those closed, oldest first
	held          int64      // what they take of the disk
	refused       taken      // what refusals take of that
	orphaned      int64      // room for the ends that this start has yet to write
	echoed        int64      // what ends take of it that starts wrote for such records
	added         int64      // what records take of it that no checkpoint covered when a start took them over
	isWithoutPart bool       // a refusal of a caller that a rule names was not taken, see tellOfPart
	empty         []declared // files that hold no record; each goes with the segment that says so
	going         []string   // files whose removal is in the log and not done yet
	isHeld        bool       // a checkpoint covers the record that says so

	ready     chan error   // has room for one: how the preparation ended
	preparing *preparation // evidence for the removal of the oldest records
	prepared  uint64       // the last one it is ready to do without

	open  map[string]uint64 // intents without an end, by id
	out   []byte            // memory for what is written of a batch
	batch []*pending        // and for those of it that are not refused

	early     chan struct{} // has room for one: there is something to sign, and nothing was signed for a while
	isLast    bool          // the log is being closed
	unwritten atomic.Uint64 // requests without a record, for the last record of all

	mu    sync.Mutex // guards stats
	stats Stats
}

// write makes a batch durable in the open segment. After an error nothing of it counts, whatever is in the file.
func (l *log) write(batch []*pending) error {
	out, seq, leaf := append(l.out[:0], 0), l.seq, l.leaf
	for _, p := range batch {
		seq++
		out = p.number(out, seq, leaf)
		leaf = p.leaf
	}
	l.out, out = out, out[1:]
	for _, p := range batch {
		p.tried = true
	}
	n, err := l.file.Write(out)
	if err == nil && n < len(out) {
		err = io.ErrShortWrite
	}
	if err == nil && !l.options.NoSync {
		err = l.file.Sync()
	}
	if err != nil {
		return err
	}
	l.seq, l.leaf, l.lastSession = seq, leaf, l.session
	l.at.bytes += int64(n)
	l.at.size, l.at.last = l.at.bytes, seq
	l.at.refused = l.at.refused.plus(refusedBytes(batch))
	for line := range bytes.Lines(out) { // before the tree has them, so that no checkpoint overtakes what it covers
		l.options.OnRecord(line)
	}
	for _, p := range batch {
		switch {
		case p.isIntent():
			l.open[p.event.ID] = p.seq
		case p.event.Type == audit.TypeRequest:
			delete(l.open, p.event.ID)
		}
		l.orphaned -= p.room
		if p.echo {
			l.at.echoed += int64(len(p.line))
		}
		if l.evidence != nil {
			l.evidence.Append(p.leaf)
		}
	}
	l.dirty.Store(true)
	periodic.Signal(l.early)
	l.count(func(s *Stats) { s.Records += uint64(len(batch)); s.Flushes++ })
	return nil
}

// own makes a record of the log itself.
func (l *log) own(stage audit.Stage, found *audit.Log) (*pending, error) {
	p := &pending{event: audit.Event{Type: audit.TypeLog, Stage: stage, Log: found, Where: l.options.Where}}
	return p, p.encode(l.session, l.options.Now)
}

// poison abandons the open segment. A flush is never retried: the kernel may have dropped the pages and report success
// the second time. Acknowledged records are in this segment; later records go to another file, and only those there count.
func (l *log) poison(err error) {
	l.count(func(s *Stats) { s.Poisoned++ })
	told := fmt.Errorf("write audit segment %s: %w", l.at.name, err)
	l.notes(func(s *Stats) { s.Err = told }) // until another segment is begun
	l.leave(audit.CauseFailure, err)
}

// leave closes the open segment, after its last record was written or cannot be written.
func (l *log) leave(cause string, err error) {
	_ = l.file.Close() // its error is known already, or comes too late
	_ = l.disk.Release(l.at.name)
	l.file, l.cause, l.fault = nil, cause, ""
	if err != nil {
		l.fault = clip(err.Error())
	}
	l.at.ended, l.at.held = l.options.Now(), l.at.bytes
	l.parts = append(l.parts, l.at)
	l.held, l.refused = l.held+l.at.held, l.refused.plus(l.at.refused)
	l.echoed += l.at.echoed
}

// clip keeps a text of the operating system from making a first record long.
func clip(s string) string {
	if len(s) > 200 {
		s = s[:200]
	}
	return strings.ToValidUTF8(s, "?")
}
