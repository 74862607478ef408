package winhost

import (
	"context"
	"fmt"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// Filesystem acts on the disk beneath the working directories.
type Filesystem struct {
	places
	reach  func(ctx context.Context, text string) (bool, error) // says whether a share is mapped
	mounts mounts
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
	if len(names) == 0 {
		return false, wrap("look at", path, tree.openable())
	}
	text, err := tree.redirection(names)
	if err != nil || text == "" {
		return false, wrap("look at", path, err)
	}
	leads, err := f.leads(ctx, text)
	return leads, wrap("look at", path, err)
}

// leads says whether the target of a link or mount point exists. The text may be anything, since other accounts can make links: a path
// is checked and walked like the path of a request, its own last name not followed; shares and volumes are looked up in the system and
// not opened; every other target is refused unseen.
func (f *Filesystem) leads(ctx context.Context, text string) (bool, error) {
	if id, isVolume := volumeIn(text); isVolume {
		if _, err := f.mounts.Paths(id); err != nil {
			return absent(err)
		}
		return true, nil
	}
	if onShare(text) {
		return f.reach(ctx, text)
	}
	to, err := f.roots.Check(text)
	if err != nil {
		return false, fmt.Errorf("%w: %w", errRedirected, err)
	}
	return f.tree(to.Root()).exists(to.Rel())
}

func wrap(act string, path safepath.Path, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", act, path, err)
}
