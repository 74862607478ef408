package safepath

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Roots are the working directories: what requests may name lies within one of them.
// Roots do not change, so that any number of goroutines may use them.
type Roots struct {
	dirs  []root // the deepest first
	names string // all of them, for messages
}

type root struct {
	text     string // as configured, without a separator at its end
	drive    byte
	segments []string
}

// NewRoots takes the working directories. Each must have the form that [Split] describes, and none may be a
// whole drive: every path of the node would lie within it. All faults are reported at once.
func NewRoots(dirs ...string) (*Roots, error) {
	if len(dirs) == 0 {
		return nil, errors.New("no working directories: no path could be accepted")
	}
	var faults []error
	r := &Roots{}
	for _, dir := range dirs {
		drive, segments, err := Split(dir)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("working directory: %w", err))
			continue
		case len(segments) == 0:
			faults = append(faults, fmt.Errorf("working directory: %s is a whole drive", dir))
			continue
		}
		r.dirs = append(r.dirs, root{text: Canonical(dir), drive: drive, segments: segments})
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	// A path within nested directories belongs to the innermost: the way to it was chosen by the
	// operator, and only what follows is the caller's.
	slices.SortStableFunc(r.dirs, func(a, b root) int { return cmp.Compare(len(b.segments), len(a.segments)) })
	r.names = strings.Join(r.Dirs(), ", ")
	return r, nil
}

// Dirs returns the working directories as configured, the deepest first.
func (r *Roots) Dirs() []string {
	texts := make([]string, len(r.dirs))
	for i, d := range r.dirs {
		texts[i] = d.text
	}
	return texts
}

// Check accepts a path that has the form [Split] describes and is a working directory or below one.
// Segments are compared whole, so that kubelet-evil is not within kubelet. The error is of type *[Error].
func (r *Roots) Check(path string) (Path, error) {
	drive, segments, err := Split(path)
	if err != nil {
		return Path{}, err
	}
	for _, d := range r.dirs {
		if d.holds(drive, segments) {
			p := Path{root: d.text}
			if len(segments) > len(d.segments) {
				p.rel = slices.Clip(segments[len(d.segments):])
			}
			return p, nil
		}
	}
	return Path{}, &Error{Path: path, Outside: true, Reason: "is not within context path: " + r.names}
}

func (d root) holds(drive byte, segments []string) bool {
	return drive == d.drive && len(segments) >= len(d.segments) &&
		slices.EqualFunc(segments[:len(d.segments)], d.segments, EqualFold)
}
