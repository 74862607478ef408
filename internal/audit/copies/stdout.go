package copies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// errNewline means that a record would be read as several.
var errNewline = errors.New("a record with a newline in it")

// Stdout returns a destination that writes each record to w as it is, with a newline behind it, and each checkpoint as a line
//
//	{"type":"checkpoint","note":"…"}
//
// where note is the signed note. Every batch is one write. If w takes a part of one, the next batch begins on a new line.
func Stdout(w io.Writer) Destination { return &stdout{w: w} }

type stdout struct {
	w      io.Writer
	isTorn bool // the last write ended within a line
}

// Name implements Destination.
func (*stdout) Name() string { return "stdout" }

// CheckpointEvery takes all checkpoints.
func (*stdout) CheckpointEvery() time.Duration { return 0 }

// Send implements Destination. A reader that reads no more holds it up for ever, whatever the context says.
func (s *stdout) Send(_ context.Context, records []Record) error {
	var out []byte
	if s.isTorn {
		out = append(out, '\n')
	}
	var ends []int // where each line ends in out
	var bad error
	for _, r := range records {
		line := r.Line
		if r.Checkpoint != nil {
			var err error
			if line, err = checkpointLine(r.Checkpoint); err != nil {
				return err
			}
		}
		if bytes.ContainsAny(line, "\r\n") {
			bad = errNewline
			continue
		}
		out = append(append(out, line...), '\n')
		ends = append(ends, len(out))
	}
	if len(ends) == 0 {
		return bad
	}
	n, err := s.w.Write(out)
	if err == nil && n < len(out) {
		err = io.ErrShortWrite
	}
	if n > 0 {
		s.isTorn = out[min(n, len(out))-1] != '\n'
	}
	whole := 0
	for whole < len(ends) && ends[whole] <= n {
		whole++
	}
	if err = errors.Join(err, bad); err != nil {
		return &PartialError{Failed: len(records) - whole, Err: fmt.Errorf("write records: %w", err)}
	}
	return nil
}
