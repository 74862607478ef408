package query

import (
	"bytes"
	"fmt"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Record is one line of a log.
type Record struct {
	audit.Event
	Raw  []byte // the line without its newline; valid until the next record is asked for
	File string // the name that it was opened by, "-" for standard input
	Line int    // in its file, counted from 1
	// Loose says why it does not follow on the record before it, by its number or by the hash that it holds; empty if it does.
	Loose string
	// IsBroken means that its number follows, and its hash does not fit: it or the record before it was changed.
	IsBroken bool
	// Missing is how many records between the one before it and this one are not read, though all of the log is.
	Missing uint64

	leaf       hash // of Raw
	isUnwanted bool // the event has only what says where it stands in its log
	isLent     bool // the event is valid until the next record is asked for, and not all of it is there
}

// Keep returns the record with a line of its own, and all of its event.
func (r Record) Keep() Record {
	r.Raw = bytes.Clone(r.Raw)
	if r.isLent {
		r = r.Whole()
	}
	return r
}

// Whole returns the record with all of its event, of its line alone, which was read as a record before.
func (r Record) Whole() Record {
	e, err := audit.Parse(r.Raw)
	if err != nil {
		panic(fmt.Sprintf("a record is none any more: %v", err))
	}
	r.Event, r.isUnwanted, r.isLent = e, false, false
	return r
}
