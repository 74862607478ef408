package winhost

import (
	"context"
	"fmt"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/safepath"
)

// Filesystem acts on the disk beneath the working directories.
type Filesystem struct {
	places
	reach func(ctx context.Context, text string) (bool, error) // looks at what is on shares
}

var _ handler.Filesystem = (*Filesystem)(nil)

// PathExists implements handler.Filesystem.
func (f *Filesystem) PathExists(ctx context.Context, path safepath.Path) (bool, error) {
	tree, names, err := f.at(ctx, path)
	if err != nil {
		return false, err
	}
	exists, err := tree.exists(names)
	return exists, wrap("look at", path, err)
}

// Mkdir implements handler.Filesystem.
func (f *Filesystem) Mkdir(ctx context.Context, path safepath.Path) error {
	tree, names, err := f.at(ctx, path)
	if err != nil {
		return err
	}
	return wrap("make directory", path, tree.mkdir(names))
}

// Rmdir implements handler.Filesystem. A working directory itself is never removed.
func (f *Filesystem) Rmdir(ctx context.Context, path safepath.Path, force bool) error {
	tree, names, err := f.at(ctx, path)
	if err != nil {
		return err
	}
	return wrap("remove", path, tree.remove(ctx, names, force))
}

// RmdirContents implements handler.Filesystem. A working directory itself is never emptied.
func (f *Filesystem) RmdirContents(ctx context.Context, path safepath.Path) error {
	tree, names, err := f.at(ctx, path)
	if err != nil {
		return err
	}
	return wrap("empty", path, tree.empty(ctx, names))
}

// CreateSymlink implements handler.Filesystem.
func (f *Filesystem) CreateSymlink(ctx context.Context, source, target safepath.Path) error {
	from, sourceNames, err := f.at(ctx, source)
	if err != nil {
		return err
	}
	to, targetNames, err := f.at(ctx, target)
	if err != nil {
		return err
	}
	isDirectory, err := from.isDirectory(sourceNames)
	if err != nil {
		return wrap("look at", source, err)
	}
	return wrap("make link", target, to.link(targetNames, source.String(), isDirectory, safepath.EqualFold))
}

// IsSymlink implements handler.Filesystem.
func (f *Filesystem) IsSymlink(ctx context.Context, path safepath.Path) (bool, error) {
	tree, names, err := f.at(ctx, path)
	if err != nil {
		return false, err
	}
	isLink, err := tree.isLink(names, func(text string) (bool, error) { return f.reach(ctx, text) })
	return isLink, wrap("look at", path, err)
}

func wrap(act string, path safepath.Path, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", act, path, err)
}
