package evidence

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// opening is the first record of a segment: the state of the log when the segment was begun.
type opening struct {
	segment.Link
	Path     string
	isPacked bool
	declared audit.Log
}

// look reads the first line of a segment. A writer judges a damaged one by itself.
func look(s segment.Entry, isWriter bool) (opening, error) {
	o := opening{Link: segment.Link{Given: s.Given, First: s.First}, Path: s.Path}
	f, err := OpenSegment(s.Path)
	if err != nil {
		return o, err
	}
	defer f.Close() //nolint:errcheck // only read
	size, isPlain := f.Size()
	o.Size, o.isPacked = size, !isPlain
	in := segment.NewLines(f, audit.MaxRecord, audit.MaxRecord)
	raw, err := in.Next()
	if errors.Is(err, io.EOF) || errors.Is(err, audit.ErrTooLong) {
		return o, nil
	}
	if err != nil {
		return o, fmt.Errorf("read %s: %w", s.Path, err)
	}
	if !isWriter && in.HasNUL() { // a page of it was lost when the machine failed
		return o, nil
	}
	o.Link = segment.LinkOf(o.Given, size, raw)
	o.Opens, o.Void = false, nil // LinkOf knows this version alone, and a reader heeds every one
	var r Record
	if isWriter { // which goes on from its own lines alone
		if _, _, ok := segment.ParseLine(raw); !ok {
			return o, nil
		}
	}
	if parseRecord(raw, &r) != nil {
		return o, nil
	}
	o.Opens = r.Seq == s.First
	if r.stage == string(audit.StageLogOpen) {
		o.declared, _ = r.logOf() // a field that cannot be read declares nothing, and the walk will find the fault
		o.Void = o.declared.Void
	}
	return o, nil
}

// lookAll reads the first lines of segments, and finds out which of them count: see segment.Counts. A damaged one is passed to damaged, if that is not nil, and
// counts as one that was not begun.
func lookAll(segments []segment.Entry, isWriter bool, damaged func(segment.Entry)) ([]opening, error) {
	var all []opening
	var links []segment.Link
	for _, s := range segments {
		o, err := look(s, isWriter)
		switch {
		case err != nil && (damaged == nil || !errors.As(err, new(*Fault))):
			return nil, err
		case err != nil:
			damaged(s)
			continue
		}
		link := o.Link
		link.Previous = o.declared.PreviousSegment
		all, links = append(all, o), append(links, link)
	}
	for i, counts := range segment.Counts(links) {
		all[i].Counts = counts
	}
	return all, nil
}

// inOrder returns the segments whose records count, in their order, how many bytes are in the others, and those of them that none of the log
// names: what they hold is no writer's word.
func inOrder(all []opening) (kept []opening, ignored int64, unnamed []opening) {
	named := map[string]bool{}
	for _, o := range all {
		if o.Counts {
			kept = append(kept, o)
			for _, name := range o.Void {
				named[name] = true
			}
		}
	}
	for _, o := range all {
		if o.Counts {
			continue
		}
		ignored += o.Size
		if !named[o.Given] {
			unnamed = append(unnamed, o)
		}
	}
	return kept, ignored, unnamed
}

// follows compares what a segment declares of the one before with what is there: bytes of the log, and bytes behind them.
func (o opening) follows(before opening, bytes, behind int64) error {
	d := o.declared
	switch {
	case d.PreviousSegment != before.Given:
		return &Fault{o.Path, 1, o.First, fmt.Sprintf("says that it follows segment %q, but comes after %s", d.PreviousSegment, filepath.Base(before.Path))}
	case d.PreviousBytes != bytes:
		return &Fault{o.Path, 1, o.First, fmt.Sprintf("says that %d bytes of %s belong to the log, but there are %d", d.PreviousBytes, filepath.Base(before.Path), bytes)}
	case d.TornBytes < 0:
		return &Fault{o.Path, 1, o.First, fmt.Sprintf("says that %d bytes follow the last record of %s: a negative number", d.TornBytes, filepath.Base(before.Path))}
	case behind > int64(d.TornBytes):
		return &Fault{before.Path, 0, o.First - 1, fmt.Sprintf("%d bytes follow its last record, but the next segment declares %d", behind, d.TornBytes)}
	}
	return nil
}
