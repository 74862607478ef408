package query

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"path/filepath"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// judged is what a line says by itself, whatever stands before it.
type judged struct {
	event audit.Event
	err   error // why the line is no record
	leaf  hash
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

// judge judges the lines of a file. It depends on nothing but the line and its number, so that lines can be judged at the same time.
type judge struct {
	name      string // of the file
	isSegment bool   // it ends at the first line with a NUL: no record has one, and a hole may be longer than any disk
}

func (j judge) line(number int, line []byte) judged {
	e, err := j.event(number, line)
	return judged{e, err, hash(evidence.Leaf(line))}
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
