package access

import (
	"fmt"
	"slices"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// Directory is a directory or a path, taken apart. The zero Directory is what safepath refuses and a whole drive: it lies in
// nothing, and nothing in it.
type Directory struct {
	drive    byte
	segments []string
}

func directoryOf(path string) Directory {
	drive, segments, err := safepath.Split(path)
	if err != nil || len(segments) == 0 {
		return Directory{}
	}
	return Directory{drive, segments}
}

// ParseDirectory accepts what safepath takes for a working directory.
func ParseDirectory(text string) (Directory, error) {
	if _, err := safepath.NewRoots(text); err != nil {
		return Directory{}, fmt.Errorf("path: %w", err)
	}
	return directoryOf(text), nil
}

// Holds says whether a path is the directory or lies in it. It compares by segments, so that kubelet-evil is not within kubelet.
func (dir *Directory) Holds(path *Directory) bool {
	return len(dir.segments) > 0 && dir.drive == path.drive && len(path.segments) >= len(dir.segments) &&
		slices.EqualFunc(path.segments[:len(dir.segments)], dir.segments, isSameName)
}

// isSameName is EqualFold, which need not be asked about what is written in the same way.
func isSameName(a, b string) bool { return a == b || safepath.EqualFold(a, b) }

// pathArguments are the paths of a call, taken apart when they are first asked for.
type pathArguments struct {
	written  []string
	least    int  // how many the operation takes
	isFree   bool // it is known to take none
	replaced int  // which of them it replaces, counted from 1
	places   []Directory
}

func argumentsOf(c *Call) pathArguments {
	least := TakesPaths(c.Operation)
	return pathArguments{written: c.Paths, least: least, isFree: least == 0 && groupOf[c.Operation] != "", replaced: ReplacesPath(c.Operation)}
}

func (a *pathArguments) all() []Directory {
	if a.places == nil {
		a.places = make([]Directory, len(a.written))
		for i, path := range a.written {
			a.places[i] = directoryOf(path)
		}
	}
	return a.places
}

// holdsPaths says whether every path is or lies in one of the directories, and one that is replaced lies in one; and names the
// first, as it was written, that does not. It is false if there are fewer paths than the operation takes: what was left
// out is not known, so not within.
func (r *Rule) holdsPaths(a *pathArguments) (outside string, ok bool) {
	if len(r.Paths) == 0 || r.OthersFree && a.isFree {
		return "", true
	}
	if len(a.written) == 0 || a.least == 0 || len(a.written) < a.least {
		return "", false
	}
	places := a.all()
	for i := range places {
		if !r.holdsPath(&places[i], i+1 == a.replaced) {
			return a.written[i], false
		}
	}
	return "", true
}

// holdsPath leaves out the directories themselves if the path is to lie below one. They are all volumes' that the rule is for.
func (r *Rule) holdsPath(path *Directory, below bool) bool {
	for i := range r.Paths {
		dir := &r.Paths[i]
		if dir.Holds(path) && (!below || len(path.segments) > len(dir.segments)) {
			return true
		}
	}
	return false
}

// isOwnPath says whether the path as it was written is a directory of the rule itself.
func (r *Rule) isOwnPath(written string) bool {
	path := directoryOf(written)
	return r.holdsPath(&path, false) && !r.holdsPath(&path, true)
}
