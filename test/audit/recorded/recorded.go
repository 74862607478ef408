// Package recorded reads the records of a node that a test runs.
// It trusts them: nothing is verified.
package recorded

import (
	"errors"
	"io"
	"iter"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// Events returns the events of a file or of a directory of segments, of a log that may be being written: a line that has no end yet
// is left out. Any other fault is returned, and is the last.
func Events(name string) iter.Seq2[audit.Event, error] { return events(name, nil) }

// Read is Events for a stream.
func Read(r io.Reader) iter.Seq2[audit.Event, error] { return events("-", r) }

func events(name string, stdin io.Reader) iter.Seq2[audit.Event, error] {
	return func(yield func(audit.Event, error) bool) {
		source, err := query.Open([]string{name}, stdin)
		if err != nil {
			yield(audit.Event{}, err)
			return
		}
		for r, err := range source.Records() {
			if bad, ok := errors.AsType[*query.BadLine](err); ok && bad.Torn {
				continue
			}
			if !yield(r.Event, err) || err != nil {
				return
			}
		}
	}
}

// Reconcile is audit.Reconcile for a log that removed nothing.
func Reconcile(records iter.Seq2[audit.Event, error]) (audit.Report, error) {
	return audit.Reconcile(records, func() (uint64, error) { return 0, nil })
}

// All returns events one by one.
func All(events []audit.Event) iter.Seq2[audit.Event, error] {
	return func(yield func(audit.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}
