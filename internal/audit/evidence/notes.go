package evidence

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// NoteError is a place in a checkpoint file where no checkpoint can be read.
type NoteError struct {
	Line int // counted from 1
	// Torn means that the file ends within the note: its write was cut short, or has not ended yet.
	Torn bool
	Err  error
}

func (e *NoteError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong.
func (e *NoteError) Unwrap() error { return e.Err }

// isTorn says whether an error means that the end of a note is missing.
func isTorn(err error) bool {
	e, ok := errors.AsType[*NoteError](err)
	return ok && e.Torn
}

var sigPrefix = []byte("— ")

// Notes returns the signed notes of a file with the number of their first line: one after another, each followed by one empty line or none.
// A place that is no note is the last thing that is returned. Each note is the caller's own.
func Notes(r io.Reader) iter.Seq2[Note, error] {
	return func(yield func(Note, error) bool) {
		in := bufio.NewReaderSize(r, maxNote)
		var n noteReader
		for {
			line, err := in.ReadSlice('\n')
			ends := errors.Is(err, io.EOF)
			if errors.Is(err, bufio.ErrBufferFull) {
				err = fmt.Errorf("longer than %d bytes", maxNote)
			}
			if err != nil && !ends {
				yield(Note{}, &NoteError{Line: n.number + 1, Err: err})
				return
			}
			if ends && len(line) == 0 {
				if n.hasSignature {
					last := n.take()
					last.IsOpen = true
					yield(last, nil)
				} else if len(n.raw) > 0 {
					yield(Note{}, &NoteError{Line: n.first, Torn: true, Err: io.ErrUnexpectedEOF})
				}
				return
			}
			done, err := n.line(line)
			if err == nil && ends { // no newline at the end
				err = &NoteError{Line: n.first, Torn: true, Err: io.ErrUnexpectedEOF}
				done.IsOpen = true // what follows may be the beginning of one more signature
			}
			if done.Raw != nil && !yield(done, nil) {
				return
			}
			if err != nil {
				yield(Note{}, err)
				return
			}
		}
	}
}

// Note is the raw text of a signed note and where it begins.
type Note struct {
	Raw  []byte
	Line int
	// End is where it ends in the file, in bytes: behind the empty line.
	End int64
	// IsOpen says that the file ends behind the note, without an empty line: of a file that is being written, more signatures may follow.
	IsOpen bool
}

type noteReader struct {
	raw          []byte
	first        int   // line at which raw begins
	number       int   // of the line read last
	end          int64 // of that line
	hasBlank     bool
	hasSignature bool
}

func (n *noteReader) take() Note {
	out := Note{Raw: bytes.Clone(n.raw), Line: n.first, End: n.end}
	n.raw, n.hasBlank, n.hasSignature = n.raw[:0], false, false
	return out
}

// line adds a line. It returns the note before if that has ended.
func (n *noteReader) line(line []byte) (done Note, err error) {
	n.number++
	isBlank, isSignature := line[0] == '\n', bytes.HasPrefix(line, sigPrefix)
	before := n.end
	n.end += int64(len(line))
	switch {
	case n.hasSignature && !isSignature:
		if done = n.take(); isBlank {
			return done, nil
		}
		done.End = before
	case isBlank && (len(n.raw) == 0 || n.hasBlank), isSignature && !n.hasBlank, !isBlank && !isSignature && n.hasBlank:
		return done, &NoteError{Line: n.number, Err: errors.New("not a signed note")}
	}
	if len(n.raw) == 0 {
		n.first = n.number
	}
	n.raw = append(n.raw, line...)
	n.hasBlank = n.hasBlank || isBlank
	n.hasSignature = n.hasSignature || isSignature
	if len(n.raw) > maxNote {
		return done, &NoteError{Line: n.first, Err: fmt.Errorf("a note longer than %d bytes", maxNote)}
	}
	return done, nil
}
