package evidence

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// cut finds where a log ends that is going to be continued, by the rule of its writer: before the first line of the last segment that is no
// record, if no more than a crash can have spoiled stands from there on and no checkpoint covers it. A segment that does not even hold
// its first record is none of the log, and the one before it is the last. A whole record in the wrong place is no work of a crash.
func (w *walk) cut() error {
	for len(w.order) > 0 {
		last := w.order[len(w.order)-1]
		end, err := ending(last, w.covered)
		if err != nil {
			return err
		}
		if end > 0 {
			w.limit = end
			return nil
		}
		w.ignored += last.size
		w.order = w.order[:len(w.order)-1]
	}
	return nil
}

// ending is how many bytes of the last segment are of the log.
func ending(s opening, covered uint64) (int64, error) {
	f, info, err := openRegular(s.Path)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // only read
	in := bufio.NewReaderSize(io.LimitReader(f, info.Size()), audit.MaxRecord+1)
	seq, good, previous, closed := s.First-1, int64(0), "", false
	repeats := 0 // the first line from which on records stand there again
	for number := 1; ; number++ {
		if closed { // whatever stands behind is none of the log
			return good, nil
		}
		raw, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			if repeats > 0 {
				return good, couldBeLost(s, repeats, seq, info.Size()-good, covered)
			}
			return good, nil // a line without its end continues nothing, however long
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return 0, fmt.Errorf("read %s, line %d: %w", s.Path, number, err)
		}
		at, prev, ok := uint64(0), "", false
		if err == nil && len(raw) <= audit.MaxRecord {
			at, prev, ok = segment.ParseLine(raw[:len(raw)-1])
		}
		if repeats == 0 && ok && at == seq+1 && (number == 1 || prev == previous) {
			seq, good = at, good+int64(len(raw))
			previous, closed = Leaf(raw[:len(raw)-1]).String(), segment.ClosesSegment(raw[:len(raw)-1])
			continue
		}
		hasEnd := err == nil
		if !hasEnd {
			if hasEnd, err = lineEnds(in, len(raw)); err != nil {
				return 0, fmt.Errorf("read %s, line %d: %w", s.Path, number, err)
			}
		}
		switch {
		case !hasEnd && repeats > 0:
			return good, couldBeLost(s, repeats, seq, info.Size()-good, covered)
		case ok && at <= seq && good > 0, !ok && repeats > 0:
			if repeats == 0 {
				repeats = number
			}
		case !hasEnd:
			return good, nil
		case ok:
			return 0, &Fault{s.Path, number, seq + 1, fmt.Sprintf("a whole record in a place that is not its own: record %d is due, behind the hash of the one before", seq+1)}
		default:
			return good, couldBeLost(s, number, seq, info.Size()-good, covered)
		}
	}
}

// couldBeLost is a *Fault if what stands behind the last record of a log, from a line on, cannot be left out of it.
func couldBeLost(s opening, line int, seq uint64, behind int64, covered uint64) error {
	switch {
	case behind > segment.MaxLost:
		return &Fault{s.Path, line, seq + 1, fmt.Sprintf("not the next record, and %d bytes from there on are more than a crash can have spoiled", behind)}
	case seq < covered:
		return &Fault{s.Path, line, seq + 1, fmt.Sprintf("not the next record, and the last checkpoint covers %d of them", covered)}
	}
	return nil
}

// lineEnds says whether a line that did not fit into the buffer has an end, given how much of it was read. Behind segment.MaxLost bytes none is looked for:
// the writer of segments ends there too.
func lineEnds(in *bufio.Reader, length int) (bool, error) {
	for {
		raw, err := in.ReadSlice('\n')
		switch length += len(raw); {
		case length > segment.MaxLost:
			return false, nil
		case err == nil:
			return true, nil
		case errors.Is(err, io.EOF):
			return false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return false, err
		}
	}
}
