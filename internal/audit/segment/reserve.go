package segment

import (
	"errors"
	"math"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// perOperation is kept free for each operation under way: its end, and the same once more should a flush fail.
const perOperation = 2 * audit.MaxRecord

// always is kept free beside it: for the end of the segment, and what is said before segments are removed.
const always = 3 * audit.MaxRecord

// forStart is kept free by everything but the ends of operations: for what the next start writes before anything else, should this process be killed on a
// full disk. That is the beginning of a segment and a checkpoint, once for each start that comes to nothing.
const forStart = 8 * audit.MaxRecord

// roomForEnds is what is kept free for the ends of operations. Those that a start writes, of operations that a process before it began, are known.
func (l *log) roomForEnds() int64 {
	if l.orphaned > 0 {
		return l.orphaned
	}
	return perOperation * int64(len(l.open))
}

// step is how far ahead space is allocated, so that not every batch has to.
const step = 4 << 20

// admit returns those of a batch for which there is room in the open segment, behind ahead bytes that are written first, and refuses
// the others. The ends of operations under way always have room, since it was kept when those were admitted. An error means that there
// is not even that: it is of a new segment on a full disk.
func (l *log) admit(batch []*pending, ahead int64) ([]*pending, error) {
	kept := l.at.bytes + ahead + always + l.roomForEnds()
	wanted, intents := kept+forStart, len(l.open)
	batch = l.admitRefusals(batch, kept)
	admitted := batch[:0:len(batch)]
	for _, p := range batch {
		if p.isIntent() {
			if intents++; intents > l.options.Admitted {
				intents--
				l.refuse(p, ErrBusy)
				continue
			}
			wanted += perOperation
		}
		if !l.isReserved(p) {
			wanted += int64(len(p.line))
		}
		admitted = append(admitted, p)
	}
	err := l.grow(wanted)
	if err == nil {
		return admitted, nil // whether there is room for more is looked at each second, so that a disk at its end is not full and well again with each call
	}
	err = errors.Join(ErrFull, err)
	l.setFull(err)
	reserved := admitted[:0]
	for _, p := range admitted {
		if l.isReserved(p) {
			reserved = append(reserved, p)
		} else {
			l.refuse(p, err)
		}
	}
	return reserved, l.grow(kept)
}

// isReserved says whether room was kept for a record: it ends an operation that was admitted.
func (l *log) isReserved(p *pending) bool {
	if p.event.Type != audit.TypeRequest || p.isIntent() {
		return false
	}
	_, open := l.open[p.event.ID]
	return open
}

// grow allocates the open segment up to size, and somewhat further if there is room.
func (l *log) grow(size int64) error {
	if size <= l.allocated {
		return nil
	}
	err := l.file.Allocate(l.allocated, size+step-l.allocated)
	if err == nil {
		l.allocated = size + step
		return nil
	}
	if errors.Is(err, errors.ErrUnsupported) {
		l.unreserved, l.allocated = true, math.MaxInt64
		return nil
	}
	if err := l.file.Allocate(l.allocated, size-l.allocated); err != nil {
		return err
	}
	l.allocated = size
	return nil
}
