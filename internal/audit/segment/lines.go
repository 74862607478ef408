package segment

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// scan calls each for the lines of a file, without their newlines, and the offset behind each. A line that is longer than a record
// may be comes as nil. What stands behind the last newline is left out. Scan ends when each says so, and before a line that is longer than
// MaxLost: no writer leaves one, and a hole in a file may be longer than any disk.
func scan(r io.Reader, each func(line []byte, end int64) bool) error {
	in := bufio.NewReaderSize(r, 8*audit.MaxRecord)
	var begun, end int64 // of the line
	long := false
	for {
		line, err := in.ReadSlice('\n')
		end += int64(len(line))
		switch {
		case end-begun > MaxLost:
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			long = true
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		begun = end
		line = line[:len(line)-1]
		if long || len(line) >= audit.MaxRecord {
			line, long = nil, false
		}
		if !each(line, end) {
			return nil
		}
	}
}

// lines scans the part of a segment that is of the log.
func (p *part) lines(disk Disk, each func(line []byte, end int64) bool) error {
	r, _, err := disk.Read(p.name)
	if err != nil {
		return fmt.Errorf("read segment %s: %w", p.name, err)
	}
	if err := errors.Join(scan(io.LimitReader(r, p.bytes), each), r.Close()); err != nil {
		return fmt.Errorf("read segment %s: %w", p.name, err)
	}
	return nil
}
