package segment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// MaxLost bounds what a crash can have spoiled at the end of a log, in bytes.
const MaxLost = maxBatch + 4*audit.MaxRecord

// MaxTorn bounds how many bytes behind the last record of a segment are read for their hash: more than any writer leaves there.
const MaxTorn = 16 * MaxLost

// MaxUnsignedTorn bounds how many such bytes are read together for segments that were not signed: each start leaves one such segment at most, and few bytes.
const MaxUnsignedTorn = 4 * MaxTorn

// MaxOpen bounds how many operations may be under way, and so how many intents without an end a log holds.
const MaxOpen = 4096

// ParseLine returns what places a line without its newline in a log: its number and the hash of the line before. False means that this package
// did not write it. Every decision about where a log ends is made with this function.
func ParseLine(line []byte) (seq uint64, prev string, ok bool) {
	h, ok := parseHead(line)
	return h.seq, h.prev, ok && json.Valid(line)
}

// begins says whether the record is an intent.
func (h head) begins() bool {
	return h.kind == string(audit.TypeRequest) && h.stage == string(audit.StageRequestReceived)
}

// ends says whether the record ends an intent.
func (h head) ends() bool {
	return h.kind == string(audit.TypeRequest) && h.stage != string(audit.StageRequestReceived) && h.intentSeq > 0
}

// opens says whether the record is the first one of a segment.
func (h head) opens() bool {
	return h.kind == string(audit.TypeLog) && h.stage == string(audit.StageLogOpen)
}

// closes says whether the record is the last one of a segment: bytes after it are not part of the log.
func (h head) closes() bool {
	return h.kind == string(audit.TypeLog) && h.stage == string(audit.StageLogClose)
}

// Ending is where a log ends in a segment: behind the last record that continues it.
type Ending struct {
	Seq   uint64 // of that record
	Bytes int64  // up to there
	Line  int    // the first line behind it, counted from 1

	session string
	leaf    [32]byte
	closed  bool            // that record closed the segment
	written bool            // the line behind it is whole and has no zero bytes, which no crash leaves
	open    map[uint64]bool // intents without an end up to there
}

// fault says what stands behind the end of a segment of so many bytes, if no crash leaves it: what is whole and does not continue the log, much, or anything behind a
// record that closed the segment.
func (e Ending) fault(name string, size int64) string {
	switch behind := size - e.Bytes; {
	case behind == 0:
	case e.closed:
		return fmt.Sprintf("%d bytes stand behind the record that closed %s", behind, name)
	case e.written:
		return fmt.Sprintf("line %d of %s is not what was written there: it and what stands behind it, %d bytes, are left out", e.Line, name, behind)
	case behind > MaxLost:
		return fmt.Sprintf("%d bytes stand behind the last record of %s, more than a crash leaves: they are left out", behind, name)
	}
	return ""
}

// measure finds where a log ends in a segment, given the number in its name, its contents, and the intents that are open before it, which it changes. It reads one line
// further. Of the records that were signed, any number may be open.
func measure(first, signed uint64, text io.Reader, open map[uint64]bool) (e Ending, err error) {
	e = Ending{Seq: first - 1, Line: 1, open: open}
	previous := ""
	err = Scan(text, func(line []byte, end int64) bool {
		h, ok := parseHead(line)
		tooMany := h.begins() && len(e.open) >= MaxOpen && h.seq > signed
		if !ok || e.closed || h.seq != e.Seq+1 || e.Line > 1 && (h.prev != previous || h.opens()) || tooMany || !json.Valid(line) {
			e.written = line != nil && bytes.IndexByte(line, 0) < 0
			return false
		}
		switch {
		case h.begins():
			e.open[h.seq] = true
		case h.ends():
			delete(e.open, h.intentSeq)
		}
		e.Seq, e.Bytes, e.session, e.leaf, e.closed = h.seq, end, h.session, Leaf(line), h.closes()
		previous = encodeLeaf(e.leaf)
		e.Line++
		return true
	})
	return e, err
}
