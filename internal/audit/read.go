package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// LineError is a line that holds no record.
type LineError struct {
	Line  int // counted from 1
	Bytes int // length of the line without its newline; of a line that is too long, as far as it was read
	// Torn means that the line is the last one and has no newline: its write was cut short.
	Torn bool
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong with the line.
func (e *LineError) Unwrap() error { return e.Err }

// Faults of lines.
var (
	ErrTooLong = fmt.Errorf("longer than %d bytes", MaxRecord)
	ErrTorn    = errors.New("ends without a newline")
	ErrVersion = errors.New("unknown record version")
)

// Read returns the records of a log in order, holding one line in memory at a time. A line that is
// no record comes as a *LineError and reading goes on after it; any other error comes from r and is the last.
func Read(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		in := bufio.NewReaderSize(r, MaxRecord)
		for number := 1; ; number++ {
			line, length, err := readLine(in)
			switch {
			case errors.Is(err, io.EOF) && length == 0:
				return
			case errors.Is(err, io.EOF):
				yield(Event{}, &LineError{Line: number, Bytes: length, Torn: true, Err: ErrTorn})
				return
			case err != nil && !errors.Is(err, ErrTooLong):
				yield(Event{}, fmt.Errorf("read audit log, line %d: %w", number, err))
				return
			}
			var event Event
			if err == nil {
				event, err = parse(line)
			}
			if err != nil {
				err = &LineError{Line: number, Bytes: length, Err: err}
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// readLine returns the next line without its newline, and its length. The line is valid until the next read.
// io.EOF means that there was no newline after it, ErrTooLong that the line was skipped.
func readLine(in *bufio.Reader) (line []byte, length int, err error) {
	line, err = in.ReadSlice('\n')
	if err == nil {
		return line[:len(line)-1], len(line) - 1, nil
	}
	length = len(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = in.ReadSlice('\n')
		length += len(line)
		if err == nil {
			return nil, length - 1, ErrTooLong
		}
	}
	return nil, length, err
}

// parse accepts exactly what this version writes: one object, no unknown field, nothing after it.
func parse(line []byte) (Event, error) {
	var version struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(line, &version); err != nil {
		return Event{}, fmt.Errorf("not a record: %w", err)
	}
	if version.V != Version {
		return Event{}, fmt.Errorf("%w %d", ErrVersion, version.V)
	}
	var event Event
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&event); err != nil {
		return Event{}, fmt.Errorf("not a record: %w", err)
	}
	if event.Seq == 0 || event.Session == "" {
		return Event{}, errors.New("not a record: no session or number")
	}
	return event, nil
}
