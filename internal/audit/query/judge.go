package query

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"path/filepath"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// judged is what a line says by itself, whatever stands before it.
type judged struct {
	event audit.Event
	err   error // why the line is no record
	leaf  hash
	// isUnwanted says that the line is a record that the reader has no use for. The event has only what says where it stands in its log.
	isUnwanted bool
	isLent     bool // the event is in the memory of the judge, and has only the parts that are wanted
}

// hash is the RFC 6962 leaf hash of a line.
type hash [sha256.Size]byte

// is says whether text is the hash as a record holds that of the one before.
func (h hash) is(text string) bool {
	var written [segment.PrevLength]byte
	base64.StdEncoding.Encode(written[:], h[:])
	return string(written[:]) == text
}

func (h hash) String() string { return base64.StdEncoding.EncodeToString(h[:]) }

// judge judges the lines of a file. It depends on nothing but the line, its number and what is wanted, so that lines can be judged at the same time, each
// judge with a memory of its own.
type judge struct {
	name      string // of the file
	isSegment bool   // it ends at the first line with a NUL: no record has one, and a hole may be longer than any disk
	wanted    Wanted
	memory    *audit.Memory
}

// line judges a line of which the leaf is known. text is the same line, if that is there already; otherwise it is empty.
func (j judge) line(number int, line []byte, text string, leaf hash) judged {
	if e, isWanted, ok := j.read(number, line, text); ok {
		return judged{event: e, leaf: leaf, isUnwanted: !isWanted, isLent: isWanted}
	}
	e, err := j.event(number, line)
	return judged{event: e, err: err, leaf: leaf}
}

// read judges a record where the reader wants only some records or parts. Of an unwanted record it returns only the place in its log. It is false for
// every other line, and for lines that are not in a writer's form: those are judged as a whole.
func (j judge) read(number int, line []byte, text string) (e audit.Event, isWanted, ok bool) {
	if j.wanted.Has == nil || j.isSegment && number == 1 {
		return audit.Event{}, false, false
	}
	if text == "" {
		text = string(line)
	}
	read, ok := j.memory.Read(text, j.wanted.Parts)
	switch {
	case !ok:
		return audit.Event{}, false, false
	case !j.wanted.Has(read):
		return audit.Event{Seq: read.Seq, Session: read.Session, Prev: read.Prev}, false, true
	}
	return *read, true, j.wanted.Lends
}

// event reads a line as a record. The one that opens a segment must be of that segment, as for a start and for a verification.
func (j judge) event(number int, line []byte) (audit.Event, error) {
	e, err := audit.Parse(line)
	if err != nil || !j.isSegment || number > 1 || e.Stage != audit.StageLogOpen {
		return e, err
	}
	given, _, _ := segment.ParseCopy(filepath.Base(j.name))
	if err := segment.MisfitOf(given, &e); err != nil {
		return audit.Event{}, fmt.Errorf("not the first record of this segment: %w", err)
	}
	return e, nil
}
