package audit

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"time"
)

// Stream writes records to something that is not a file of ours, such as standard output.
// Its numbers begin at 1; it writes no records of its own. A record that could not be written
// leaves a gap in the numbers, and the next one is tried again.
type Stream struct {
	session string

	mu   sync.Mutex // guards the fields below, and keeps numbers and lines in the same order
	w    io.Writer
	seq  uint64
	torn bool // the last write ended within a line
	line []byte
}

var _ Writer = (*Stream)(nil)

// NewStream returns a Writer of one JSON object a line to w.
func NewStream(w io.Writer) *Stream {
	return &Stream{session: rand.Text(), w: w}
}

// Append implements Writer. The record is durable when w has taken it.
func (s *Stream) Append(ctx context.Context, event *Event) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("append to audit stream: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := *event
	e.stamp(s.session, s.seq+1)
	line, err := Encode(s.line, e)
	if err != nil {
		return 0, err
	}
	s.line = line
	s.seq = e.Seq
	if s.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := s.w.Write(line)
	if err == nil && n < len(line) {
		err = io.ErrShortWrite
	}
	if err != nil {
		if n > 0 && n <= len(line) {
			s.torn = line[n-1] != '\n'
		}
		return e.Seq, fmt.Errorf("append to audit stream: %w", err)
	}
	s.torn = false
	return e.Seq, nil
}

// stamp sets what a stream decides about a record.
func (e *Event) stamp(session string, seq uint64) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.V, e.Session, e.Seq, e.Time = Version, session, seq, e.Time.UTC()
}
