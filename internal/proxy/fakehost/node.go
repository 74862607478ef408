package fakehost

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

type kind int

const (
	kindDir kind = iota
	kindFile
	kindLink
)

// node is what a name in a directory stands for.
type node struct {
	name     string // as it was first spelled
	kind     kind
	children map[string]*node   // of a directory, by folded name
	target   safepath.Path      // of a link; zero if it leads out of the working directories
	remote   handler.RemotePath // of a link to a share; zero if it leads elsewhere
	mounted  *volume            // at a directory: its own children are not seen while a volume is there
}

func newDir(name string) *node {
	return &node{name: name, kind: kindDir, children: map[string]*node{}}
}

// place is where a path leads: a name in a directory, and what it stands for, if anything.
type place struct {
	dir  *node
	name string
	node *node   // nil if the name is free
	on   *volume // innermost volume that was entered on the way; nil on the drive itself
}

func (p place) set(n *node) { p.dir.children[fold(p.name)] = n }
func (p place) remove()     { delete(p.dir.children, fold(p.name)) }

// maxLinks bounds the links on one way; links can lead in a circle.
const maxLinks = 32

var (
	errLeadsOut = fmt.Errorf("a link leads out of the working directories: %w", fs.ErrPermission)
	errCircle   = errors.New("too many links")
	// errRedirected is about links and mount points on the way, as on Windows.
	errRedirected = fmt.Errorf("a link or mount point is not followed: %w", fs.ErrPermission)
)

// way says how to walk.
type way struct {
	follow bool // links and mount points on the way, which are errors otherwise
	last   bool // the last component, if it is a link
	create bool // directories that are missing
	links  int  // that may still be followed
}

// find walks to a path, through links and mount points, and to what the last component leads to, only if follow is set. The working directory itself is always there. With a missing parent the error is fs.ErrNotExist.
func (h *Host) find(p safepath.Path, follow bool) (place, error) {
	at, _, err := h.walk(p, way{follow: follow, last: follow, links: maxLinks})
	return at, err
}

// existing is find for a path whose name must not be free.
func (h *Host) existing(p safepath.Path, follow bool) (place, error) {
	at, err := h.find(p, follow)
	if err == nil && at.node == nil {
		err = fs.ErrNotExist
	}
	return at, err
}

// walk also says whether it has created a directory.
func (h *Host) walk(p safepath.Path, how way) (at place, created bool, err error) {
	if p.IsZero() {
		return place{}, false, fs.ErrInvalid
	}
	text := p.String()
	segments := strings.Split(text[len(`X:\`):], `\`)
	own := len(segments) - len(p.Rel()) // those of the working directory
	at = place{node: h.drive(text[0])}
	for i, segment := range segments {
		last := i == len(segments)-1
		dir, on, err := h.enter(at, how.follow)
		if err != nil {
			return place{}, created, err
		}
		child := dir.children[fold(segment)]
		if child == nil && (i < own || how.create) {
			child = newDir(segment)
			dir.children[fold(segment)] = child
			created = created || i >= own
		}
		at = place{dir: dir, name: segment, node: child, on: on}
		switch {
		case child == nil && !last:
			return place{}, created, fs.ErrNotExist
		case child == nil || child.kind != kindLink:
		case !last && !how.follow:
			return place{}, created, errRedirected
		case !last || how.last:
			if at, err = h.through(child, how.links); err != nil {
				return place{}, created, err
			}
		}
	}
	return at, created, nil
}

// through returns the place that a link leads to.
func (h *Host) through(link *node, links int) (place, error) {
	if link.target.IsZero() {
		return place{}, errLeadsOut
	}
	if links == 0 {
		return place{}, errCircle
	}
	to, _, err := h.walk(link.target, way{follow: true, last: true, links: links - 1})
	if err == nil && to.node == nil {
		err = fs.ErrNotExist
	}
	return to, err
}

// enter returns the directory whose names are seen at a place, and the volume that it is on.
func (h *Host) enter(p place, follow bool) (*node, *volume, error) {
	switch {
	case p.node.kind != kindDir:
		return nil, nil, fs.ErrNotExist // Windows says of a path through a file that it is not found
	case p.node.mounted == nil:
		return p.node, p.on, nil
	case !follow:
		return nil, nil, errRedirected
	case !h.shows(p.node.mounted.of):
		return nil, nil, fs.ErrNotExist
	case !p.node.mounted.Formatted:
		return nil, nil, fmt.Errorf("volume %s has no file system: %w", p.node.mounted.ID, handler.ErrPrecondition)
	}
	return p.node.mounted.root, p.node.mounted, nil
}

func (h *Host) drive(letter byte) *node {
	letter &^= 0x20
	if h.drives[letter] == nil {
		h.drives[letter] = newDir(string(letter) + ":")
	}
	return h.drives[letter]
}

// failed names an operation and its path beside the error, as a real file system does.
func failed(op string, p safepath.Path, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: p.String(), Err: err}
}
