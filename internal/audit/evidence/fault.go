package evidence

import (
	"errors"
	"fmt"
)

// Fault is a place where a log contradicts itself, its checkpoints or its format.
type Fault struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"` // counted from 1; 0 if it is about the whole file
	Seq     uint64 `json:"seq,omitempty"`
	Problem string `json:"problem"`
}

func (f *Fault) Error() string {
	switch {
	case f.Line > 0 && f.Seq > 0:
		return fmt.Sprintf("%s line %d (record %d): %s", f.File, f.Line, f.Seq, f.Problem)
	case f.Line > 0:
		return fmt.Sprintf("%s line %d: %s", f.File, f.Line, f.Problem)
	}
	return fmt.Sprintf("%s: %s", f.File, f.Problem)
}

// IsFault says whether an error means that a log was changed, rather than that reading failed.
func IsFault(err error) bool {
	return errors.As(err, new(*Fault)) || errors.Is(err, ErrRolledBack)
}
