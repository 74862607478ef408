package acl

import (
	"fmt"
	"slices"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// place is a directory or a path, taken apart. The zero place is what safepath refuses and a whole drive: it lies in
// nothing, and nothing in it.
type place struct {
	drive    byte
	segments []string
}

func placeOf(path string) place {
	drive, segments, err := safepath.Split(path)
	if err != nil || len(segments) == 0 {
		return place{}
	}
	return place{drive, segments}
}

// holds compares by segments, so that kubelet-evil is not within kubelet.
func (dir *place) holds(path *place) bool {
	return len(dir.segments) > 0 && dir.drive == path.drive && len(path.segments) >= len(dir.segments) &&
		slices.EqualFunc(path.segments[:len(dir.segments)], dir.segments, isSameName)
}

// isSameName is EqualFold, which need not be asked about what is written in the same way.
func isSameName(a, b string) bool { return a == b || safepath.EqualFold(a, b) }

// parsePath accepts what safepath takes for a working directory.
func parsePath(text string) (place, error) {
	if _, err := safepath.NewRoots(text); err != nil {
		return place{}, fmt.Errorf("path: %w", err)
	}
	return placeOf(text), nil
}

// pathArguments are the paths of a call, taken apart when they are first asked for.
type pathArguments struct {
	written  []string
	least    int // how many the operation takes
	replaced int // which of them it replaces, counted from 1
	places   []place
}

func argumentsOf(r Request) pathArguments {
	return pathArguments{written: r.Paths, least: access.TakesPaths(r.Operation), replaced: access.ReplacesPath(r.Operation)}
}

func (a *pathArguments) all() []place {
	if a.places == nil {
		a.places = make([]place, len(a.written))
		for i, path := range a.written {
			a.places[i] = placeOf(path)
		}
	}
	return a.places
}

// holdsPaths says whether every path is or lies in one of the directories, and one that is replaced lies in one; and names the
// first, as it was written, that does not. It is false if there are fewer paths than the operation takes: what was left
// out is not known, so not within.
func (r *rule) holdsPaths(a *pathArguments) (outside string, ok bool) {
	if len(r.paths) == 0 {
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
func (r *rule) holdsPath(path *place, below bool) bool {
	for i := range r.paths {
		dir := &r.paths[i]
		if dir.holds(path) && (!below || len(path.segments) > len(dir.segments)) {
			return true
		}
	}
	return false
}

// isOwnPath says whether the path as it was written is a directory of the rule itself.
func (r *rule) isOwnPath(written string) bool {
	path := placeOf(written)
	return r.holdsPath(&path, false) && !r.holdsPath(&path, true)
}
