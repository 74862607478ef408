package segment

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// note stands in the first record of every segment.
const note = "This file is a segment of an audit log of Pipeguard. Each line is one record: a JSON object whose fields stand in a fixed order. " +
	"The numbers (seq) run without gaps over all segments of the directory, in the order of the numbers in their names. prev is the base64 " +
	"of the hash of the line before, which may be in another segment: SHA-256 of a zero byte and the line without its newline (the leaf hash " +
	"of RFC 6962). An operation has two records: RequestReceived, which was on the disk before it ran, and one of ResponseComplete, Panic and " +
	"Orphaned, which names the first in intent_seq. What was refused has one record, or is counted in one of stage Summary. Of previous_segment, the first previous_bytes bytes are " +
	"of the log, and nothing behind them. Segments are never changed after they were closed; LogPrune names those that were removed. The " +
	"checkpoints beside them are signed: pipeguard audit verify holds the two against each other."

// maxVoid bounds how many files without a record are named in the next segment.
const maxVoid = 32

// created is a segment without a record.
type created struct {
	name      string
	file      File
	allocated int64
}

// create makes a new file and room in it for its first record and the operations under way.
func (l *log) create(first uint64) (*created, error) {
	c := &created{name: Name(first)}
	var err error
	if c.file, err = l.disk.Create(c.name); err != nil {
		return nil, fmt.Errorf("create audit segment: %w", err)
	}
	c.allocated = audit.MaxRecord + always + l.roomForEnds()
	err = c.file.Allocate(0, c.allocated)
	if errors.Is(err, errors.ErrUnsupported) {
		l.unreserved, c.allocated, err = true, math.MaxInt64, nil
	}
	if err != nil {
		l.discard(c)
		return nil, fmt.Errorf("reserve space for an audit segment: %w", err)
	}
	return c, nil
}

// discard removes a file in which no record counts. If that fails, the next segment declares it void.
func (l *log) discard(c *created) {
	_ = c.file.Close()
	if err := l.disk.Remove(c.name); err != nil {
		_ = l.disk.Release(c.name)
		l.declare(c.name)
	}
}

// declare lets the next segment name files without a record. Of more than it can name, the first go with their neighbours, by their own numbers.
func (l *log) declare(names ...string) {
	l.void = append(l.void, names...)
	n := max(0, len(l.void)-maxVoid)
	for _, name := range l.void[:n] {
		first, _ := ParseName(name)
		l.empty = append(l.empty, declared{name, first})
	}
	l.void = l.void[n:]
}

// begin starts a segment with a record of what was before and as much of the batch as there is room for, and returns that. There
// must be no open segment. Records that may be on the disk already are marked.
func (l *log) begin(batch []*pending, orphaned int) ([]*pending, error) {
	c := l.next
	if l.next = nil; c == nil {
		var err error
		if c, err = l.create(l.seq + 1); err != nil {
			return batch, err
		}
	}
	before := l.at
	found := l.found(orphaned)
	found.Segment = c.name // the next segment will name it too, and until then nothing else does
	opening, err := l.own(audit.StageLogOpen, found)
	if err != nil {
		l.discard(c)
		return batch, err
	}
	l.file, l.allocated = c.file, c.allocated
	l.at = part{name: c.name, first: l.seq + 1}
	batch, err = l.admit(batch, int64(len(opening.line)))
	for _, p := range batch {
		if err == nil && p.tried {
			p.event.Again = true
			err = p.encode(l.session, l.options.Now)
		}
	}
	if err == nil {
		err = l.write(append([]*pending{opening}, batch...))
	}
	if err != nil {
		l.file, l.at = nil, before
		l.discard(c)
		return batch, fmt.Errorf("begin audit segment: %w", err)
	}
	l.began = time.Now()
	l.here = l.began
	for _, name := range l.void {
		l.empty = append(l.empty, declared{name, l.at.first})
	}
	l.at.opening.Time = opening.event.Time
	l.void, l.lost, l.unsigned, l.cause, l.fault = nil, 0, 0, "", ""
	return batch, nil
}

// torn is how many bytes stand behind the end of the last segment, and the hash of these, so that nothing can be put in their place later. A
// file that is gone, or cannot be read, has none. More than MaxTorn have no hash: no writer leaves so many, and a hole may be longer than any disk.
func (l *log) torn() (n int, hash string) {
	r, size, err := l.disk.Read(l.at.name)
	if err != nil {
		return 0, ""
	}
	defer r.Close() //nolint:errcheck // only read
	if size <= l.at.bytes {
		return 0, ""
	}
	if size-l.at.bytes > MaxTorn {
		l.options.OnFault(fmt.Errorf("%d bytes stand behind the end of audit segment %s, more than any writer leaves: they are declared without their hash", size-l.at.bytes, l.at.name))
		return int(size - l.at.bytes), ""
	}
	if hash, err = hashBehind(r, l.at.bytes, size-l.at.bytes); err != nil {
		l.options.OnFault(fmt.Errorf("read what stands behind the end of audit segment %s: %w", l.at.name, err))
		return int(size - l.at.bytes), ""
	}
	return int(size - l.at.bytes), hash
}

// found describes the state of the log that the new segment continues.
func (l *log) found(orphaned int) *audit.Log {
	g := &audit.Log{
		PreviousSession: l.lastSession, PreviousSeq: l.seq, PreviousSegment: l.at.name, PreviousBytes: l.at.bytes,
		Void: l.void, VoidHeld: l.heldAll(l.void), Cause: l.cause, Fault: l.fault, Orphaned: orphaned, Lost: l.lost, Unsigned: l.unsigned, Unreserved: l.unreserved, Note: note,
	}
	if l.at.name != "" && l.cause != audit.CauseSize && l.cause != audit.CauseAge {
		g.TornBytes, g.PreviousTornHash = l.torn()
	}
	for _, seq := range l.open {
		if g.OldestOpen == 0 || seq < g.OldestOpen {
			g.OldestOpen = seq
		}
	}
	return g
}
