// Package recorded reads the records of a node that a test runs.
// It trusts them: nothing is verified.
package recorded

import (
	"errors"
	"iter"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// Events returns the events of a file or of a directory of segments, of a log that may be being written: a line that has no end yet
// is left out. Any other fault is returned, and is the last.
func Events(name string) iter.Seq2[audit.Event, error] {
	return func(yield func(audit.Event, error) bool) {
		source, err := query.Open([]string{name}, nil)
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
