package evidence

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// lookVoid compares the segments that the log declares void with what it says that they held then. Filling one later, even with records, is a change
// of the log.
func (w *walk) lookVoid(all []opening) error {
	left, isHere := map[string]opening{}, map[string]bool{}
	for _, o := range all {
		if isHere[o.Given] = true; !o.Counts {
			left[o.Given] = o
		}
	}
	for at, o := range w.order {
		d := o.declared
		for i, name := range d.Void {
			v, ok := left[name]
			if !ok {
				if !isHere[name] && at > 0 {
					w.isGone(o.First, fmt.Sprintf("no record counts in %s, and it is not here", name))
				}
				continue
			}
			w.void = append(w.void, filepath.Base(v.Path))
			was := ""
			if i < len(d.VoidHeld) {
				was = d.VoidHeld[i]
			}
			if err := w.compareVoid(v, was, o); err != nil {
				return err
			}
			delete(left, name)
		}
	}
	return nil
}

// compareVoid compares a void segment with what the segment by says of it.
func (w *walk) compareVoid(v opening, was string, by opening) error {
	size, hash, ok := segment.ParseHeld(was)
	if !ok { // of a version that did not say it, or it could not be read
		w.noteUnhashed(v.Path, v.Size)
		return nil
	}
	f, err := OpenSegment(v.Path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	now, isPlain := f.Size()
	if !isPlain {
		if now, err = io.Copy(io.Discard, f); err != nil {
			return err
		}
	}
	switch {
	case now > size:
		return &Fault{v.Path, 0, 0, fmt.Sprintf("%d bytes are in it, and %d were when %s declared that no record in it counts", now, size, filepath.Base(by.Path))}
	case now < size:
		w.unheld = append(w.unheld, fmt.Sprintf("%d bytes are in %s, and %d were when %s declared that no record in it counts: what they are cannot be told from their hash",
			now, filepath.Base(v.Path), size, filepath.Base(by.Path)))
		return nil
	case hash == "" || now > segment.MaxTorn:
		w.noteUnhashed(v.Path, now)
		return nil
	}
	again, err := OpenSegment(v.Path)
	if err != nil {
		return err
	}
	defer again.Close() //nolint:errcheck // only read
	held, err := segment.Held(again, now)
	if err != nil {
		return fmt.Errorf("read %s: %w", v.Path, err)
	}
	if _, is, _ := segment.ParseHeld(held); is != hash {
		return &Fault{v.Path, 0, 0, fmt.Sprintf("what is in it is not what was when %s declared that no record in it counts", filepath.Base(by.Path))}
	}
	return nil
}
