package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// readTail says how a log ends: its last whole record and what stands after it. needsNewline means that the last
// line has no newline; if all that it lacks is that, it is a record once it gets one.
func readTail(file handle) (found Log, needsNewline bool, err error) {
	info, err := file.Stat()
	if err != nil {
		return Log{}, false, err
	}
	// Two records' length holds the last whole record and a torn one after it.
	size := min(info.Size(), 2*MaxRecord)
	tail := make([]byte, size)
	if n, err := file.ReadAt(tail, info.Size()-size); err != nil && (!errors.Is(err, io.EOF) || int64(n) < size) {
		return Log{}, false, fmt.Errorf("read %d bytes: %w", size, err)
	}
	end := bytes.LastIndexByte(tail, '\n') + 1
	whole, torn := tail[:end], tail[end:]
	if json.Valid(torn) { // no beginning of a record is valid JSON by itself
		whole, torn = append(tail, '\n'), nil
	}
	found.TornBytes = len(torn)
	lines := bytes.Split(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
	var record struct {
		Seq     uint64 `json:"seq"`
		Session string `json:"session"`
	}
	// A last line that is no record leaves both fields empty: the reader will find the same line and report it.
	if json.Unmarshal(lines[len(lines)-1], &record) == nil {
		found.PreviousSession, found.PreviousSeq = record.Session, record.Seq
	}
	return found, end < len(tail), nil
}
