package segment

import (
	"errors"
	"fmt"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Misfit says why the first line of a segment, without its newline, is no opening of the segment that its writer gave a name; nil if it is one. A start, the
// evidence, verifiers and readers ask this one function: what one of them takes for a part of the log, none of the others refuses. A start takes over no
// unsigned segment that does not fit; what was signed counts by its hashes, whatever it says.
func Misfit(given string, line []byte) error {
	e, err := audit.Parse(line)
	if err != nil {
		return err
	}
	return MisfitOf(given, &e)
}

// MisfitOf is Misfit for a line that was read as a record before.
func MisfitOf(given string, e *audit.Event) error {
	l := e.Log
	first, _ := ParseName(given)
	switch {
	case e.Type != audit.TypeLog || e.Stage != audit.StageLogOpen:
		return errors.New("it is not a record that opens a segment")
	case e.Seq != first:
		return fmt.Errorf("it is record %d, but the name of its file has %d", e.Seq, first)
	case l == nil: // it follows on nothing
	case l.Segment != "" && l.Segment != given:
		return fmt.Errorf("it says that it belongs to %s", l.Segment)
	case l.PreviousBytes < 0 || l.TornBytes < 0 || l.Orphaned < 0:
		return errors.New("it contains a negative number")
	}
	return nil
}
