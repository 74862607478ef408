package segment

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// ErrEndless means that a line is longer than anything that is read of one. It is an audit.ErrTooLong.
var ErrEndless = fmt.Errorf("%w by far", audit.ErrTooLong)

// Lines reads a log line by line, for starts, verifications and readers alike. A line of up to audit.MaxRecord bytes with its newline is returned, a longer one passed
// over; one that is longer than most ends the reading, since a hole in a file may be longer than any disk.
type Lines struct {
	in     *bufio.Reader
	most   int
	number int    // of the line that was read last
	begin  int64  // bytes before it
	size   int    // of it, as far as it was read
	begun  []byte // of a line that did not come at once
	isOpen bool   // its newline has not come yet
	hasNUL bool
}

// NewLines reads from r through a buffer of so many bytes.
func NewLines(r io.Reader, buffer, most int) *Lines {
	return &Lines{in: bufio.NewReaderSize(r, buffer), most: most}
}

// Next returns the next line without its newline, valid until the next call. After audit.ErrTooLong Next goes on behind that line; after ErrEndless it must not be called.
// After io.EOF it goes on within the line whose end is missing, if there is more by then.
func (l *Lines) Next() ([]byte, error) {
	if !l.isOpen {
		l.number, l.begin = l.number+1, l.begin+int64(l.size)
		l.size, l.begun, l.isOpen, l.hasNUL = 0, l.begun[:0], true, false
	}
	for {
		part, err := l.in.ReadSlice('\n')
		l.size += len(part)
		l.hasNUL = l.hasNUL || bytes.IndexByte(part, 0) >= 0
		if l.size > l.most {
			return nil, ErrEndless
		}
		isTooLong := l.size > audit.MaxRecord
		if !isTooLong && (err != nil || len(l.begun) > 0) {
			l.begun = append(l.begun, part...)
			part = l.begun
		}
		switch {
		case err == nil && isTooLong:
			l.isOpen = false
			return nil, audit.ErrTooLong
		case err == nil:
			l.isOpen = false
			return part[:len(part)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// Number is that of the line that was read last, counted from 1.
func (l *Lines) Number() int { return l.number }

// Begin is how many bytes stand before that line.
func (l *Lines) Begin() int64 { return l.begin }

// Size is how many bytes of that line were read, its newline included.
func (l *Lines) Size() int { return l.size }

// End is how many bytes were read up to the end of that line.
func (l *Lines) End() int64 { return l.begin + int64(l.size) }

// IsWhole says whether that line has its newline.
func (l *Lines) IsWhole() bool { return l.number > 0 && !l.isOpen }

// HasNUL says whether that line has a zero byte: no record has one, and a hole in a file consists of them.
func (l *Lines) HasNUL() bool { return l.hasNUL }

// Rest is what stands behind that line.
func (l *Lines) Rest() io.Reader { return l.in }

// Reset reads from the beginning of another file.
func (l *Lines) Reset(r io.Reader) {
	l.in.Reset(r)
	*l = Lines{in: l.in, most: l.most, begun: l.begun[:0]}
}

// GoOn continues the numbers from the line that another Lines read last, with which r begins.
func (l *Lines) GoOn(from *Lines) { l.number, l.begin = max(from.number-1, 0), from.begin }

// Release frees the memory for reading. The position stays known.
func (l *Lines) Release() { l.in, l.begun = nil, nil }

// Scan calls each for the lines of a file, without their newlines, and the offset behind each. A line that is longer than a record
// may be comes as nil. What stands behind the last newline is left out. Scan ends when each says so, and before a line that is longer than
// MaxLost: no writer leaves one.
func Scan(r io.Reader, each func(line []byte, end int64) bool) error {
	in := NewLines(r, 8*audit.MaxRecord, MaxLost)
	for {
		line, err := in.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, ErrEndless):
			return nil
		case err != nil && !errors.Is(err, audit.ErrTooLong):
			return err
		case !each(line, in.End()):
			return nil
		}
	}
}

// lines scans the part of a segment that belongs to the log.
func (p *part) lines(disk Disk, each func(line []byte, end int64) bool) error {
	return readFile(disk, p.name, func(r io.Reader, _ int64) error { return Scan(io.LimitReader(r, p.bytes), each) })
}

// readFile passes the contents of a segment and its size to each, and closes it.
func readFile(disk Disk, name string, each func(r io.Reader, size int64) error) error {
	r, size, err := disk.Read(name)
	if err == nil {
		err = errors.Join(each(r, size), r.Close())
	}
	if err != nil {
		return fmt.Errorf("read segment %s: %w", name, err)
	}
	return nil
}
