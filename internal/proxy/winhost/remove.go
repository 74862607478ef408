package winhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// deepest bounds how many directories are held open at once while a tree is removed, and so how
// many levels a program that writes to the tree can make this process hold.
const deepest = 512

// batch is how many names are read before they are removed and the directory is read again.
const batch = 256

// remove removes a file, a link or an empty directory, and with force a directory with all that it holds.
// With force, absence is success.
func (t tree) remove(ctx context.Context, names []string, force bool) error {
	err := t.with(names, func(at at) error {
		if force {
			return removeAll(ctx, at, deepest)
		}
		return at.parent.Remove(at.name)
	})
	if force && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// empty removes what a directory holds. The directory must be one: a link there would lead elsewhere.
func (t tree) empty(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return errRoot
	}
	victim, err := t.descend(names, false)
	if err != nil {
		return err
	}
	return errors.Join(clearDir(ctx, victim, deepest), victim.Close())
}

// removeAll empties at if it is a directory and then removes it. Links and mount points are removed and not
// followed: which it is comes from opening it, so that nothing can change between the question and the act.
func removeAll(ctx context.Context, at at, levels int) error {
	if err := checkName(at.name); err != nil {
		return err
	}
	victim, err := at.parent.Open(at.name)
	switch {
	case errors.Is(err, errRedirected), errors.Is(err, errNotDir):
		return at.parent.Remove(at.name)
	case err != nil:
		return err
	}
	if err := errors.Join(clearDir(ctx, victim, levels), victim.Close()); err != nil {
		return fmt.Errorf("%s: %w", at.name, err)
	}
	return at.parent.Remove(at.name)
}

// clearDir removes every entry of an open directory. It fails if an entry of a batch cannot be removed, after the others of that
// batch were tried; if another program keeps filling the directory, it ends with the context.
func clearDir(ctx context.Context, victim dir, levels int) error {
	if levels == 0 {
		return fmt.Errorf("more than %d directories within each other", deepest)
	}
	for {
		names, err := victim.Names(batch)
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if len(names) == 0 {
			return nil
		}
		var failed error
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := removeAll(ctx, at{victim, name}, levels-1)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = errors.Join(failed, err)
			}
		}
		if failed != nil {
			return failed
		}
	}
}
