package query

import (
	"bytes"

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
}

// Keep returns the record with a line of its own.
func (r Record) Keep() Record {
	r.Raw = bytes.Clone(r.Raw)
	return r
}
