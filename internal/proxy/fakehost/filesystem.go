package fakehost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

var (
	errNotEmpty = fmt.Errorf("the directory is not empty: %w", fs.ErrExist)
	errIsLink   = fmt.Errorf("it is a link or a mount point: %w", handler.ErrPrecondition)
	errIsRoot   = fmt.Errorf("it is a working directory: %w", fs.ErrPermission)
)

// PathExists implements [handler.Filesystem].
func (h *Host) PathExists(ctx context.Context, path safepath.Path) (bool, error) {
	return ask(ctx, h, "PathExists", []string{path.String()}, func() (bool, error) {
		at, err := h.find(path, false)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return at.node != nil, failed("stat", path, err)
	})
}

// Mkdir implements [handler.Filesystem].
func (h *Host) Mkdir(ctx context.Context, path safepath.Path) error {
	return h.change(ctx, "Mkdir", []string{path.String()}, func() (bool, error) {
		changed, err := h.mkdir(path)
		return changed, failed("mkdir", path, err)
	})
}

func (h *Host) mkdir(path safepath.Path) (changed bool, err error) {
	at, created, err := h.walk(path, way{create: true})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// Nothing is missing when what is missing is made: a file has the name of a directory.
		return created, fs.ErrExist
	case err != nil:
		return created, err
	case at.node.kind != kindDir:
		return created, fs.ErrExist
	}
	return created, nil
}

// Rmdir implements [handler.Filesystem].
func (h *Host) Rmdir(ctx context.Context, path safepath.Path, force bool) error {
	return h.change(ctx, "Rmdir", []string{path.String(), strconv.FormatBool(force)}, func() (bool, error) {
		changed, err := h.rmdir(path, force)
		return changed, failed("remove", path, err)
	})
}

func (h *Host) rmdir(path safepath.Path, force bool) (changed bool, err error) {
	if len(path.Rel()) == 0 {
		return false, errIsRoot
	}
	at, err := h.existing(path, false)
	switch {
	case errors.Is(err, fs.ErrNotExist) && force:
		return false, nil
	case err != nil:
		return false, err
	case !force && at.node.mounted == nil && len(at.node.children) > 0:
		return false, errNotEmpty
	}
	at.remove() // with all beneath it, and with links and mount points, but not with what those lead to
	return true, nil
}

// RmdirContents implements [handler.Filesystem].
func (h *Host) RmdirContents(ctx context.Context, path safepath.Path) error {
	return h.change(ctx, "RmdirContents", []string{path.String()}, func() (bool, error) {
		changed, err := h.rmdirContents(path)
		return changed, failed("remove contents of", path, err)
	})
}

func (h *Host) rmdirContents(path safepath.Path) (changed bool, err error) {
	if len(path.Rel()) == 0 {
		return false, errIsRoot
	}
	at, err := h.existing(path, false)
	switch {
	case err != nil:
		return false, err
	case at.node.kind == kindLink, at.node.mounted != nil:
		return false, errIsLink
	case at.node.kind == kindFile:
		return false, fmt.Errorf("it is a file: %w", handler.ErrPrecondition)
	}
	changed = len(at.node.children) > 0
	clear(at.node.children)
	return changed, nil
}

// CreateSymlink implements [handler.Filesystem].
func (h *Host) CreateSymlink(ctx context.Context, source, target safepath.Path) error {
	return h.change(ctx, "CreateSymlink", []string{source.String(), target.String()}, func() (bool, error) {
		at, err := h.find(target, false)
		switch {
		case source.IsZero():
			err = fs.ErrInvalid
		case err != nil:
		case at.node == nil:
			at.set(&node{name: at.name, kind: kindLink, target: source})
			return true, nil
		case at.node.kind != kindLink || at.node.target.Fold() != source.Fold():
			err = fs.ErrExist
		}
		return false, failed("symlink", target, err)
	})
}

// IsSymlink implements [handler.Filesystem].
func (h *Host) IsSymlink(ctx context.Context, path safepath.Path) (bool, error) {
	return ask(ctx, h, "IsSymlink", []string{path.String()}, func() (bool, error) {
		is, err := h.isSymlink(path)
		return is, failed("readlink", path, err)
	})
}

func (h *Host) isSymlink(path safepath.Path) (bool, error) {
	at, err := h.existing(path, false)
	switch {
	case err != nil:
		return false, err
	case at.node.kind != kindLink:
		return at.node.mounted != nil, nil
	case !at.node.remote.IsZero():
		return h.isMapped(at.node.remote.Share()), nil
	case at.node.target.IsZero():
		return false, errLeadsOut
	}
	to, err := h.find(at.node.target, false) // a link to a link that leads nowhere still leads to a link
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return to.node != nil, err
}
