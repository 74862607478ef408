package winhost

import (
	"errors"
	"fmt"
	"io/fs"
)

// tree is a working directory with the operations on what is beneath it. Every operation opens the
// working directory anew, so that none keeps it from being replaced by its owner.
type tree struct {
	name string
	open func() (dir, error)
}

// at is a name in an open directory: the place on which an operation acts.
type at struct {
	parent dir
	name   string
}

// errRoot keeps the working directory itself from being removed or replaced: everything is beneath it.
var errRoot = fmt.Errorf("the working directory itself: %w", fs.ErrPermission)

// descend opens the directory at names. make says whether missing directories are made.
func (t tree) descend(names []string, make bool) (dir, error) {
	current, err := t.open()
	if err != nil {
		return nil, fmt.Errorf("open working directory %s: %w", t.name, err)
	}
	for _, name := range names {
		if current, err = advance(current, name, make); err != nil {
			return nil, err
		}
	}
	return current, nil
}

// openable returns an error unless the working directory itself can be opened.
func (t tree) openable() error {
	root, err := t.descend(nil, false)
	if err != nil {
		return err
	}
	return root.Close()
}

// advance is step that closes the directory that it comes from.
func advance(from dir, name string, make bool) (dir, error) {
	next, err := step(from, name, make)
	if err = errors.Join(err, from.Close()); err != nil && next != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, err
}

func step(from dir, name string, make bool) (dir, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	next, err := from.Open(name)
	if make && errors.Is(err, fs.ErrNotExist) {
		// Another process may make it first; then that one is opened and checked.
		if err := from.Mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		next, err = from.Open(name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return next, nil
}

// with opens the parent of names and acts on the last of them, which is not followed.
func (t tree) with(names []string, act func(at) error) error { return t.within(names, false, act) }

// within is with; make says whether missing parents are made.
func (t tree) within(names []string, make bool, act func(at) error) error {
	if len(names) == 0 {
		return errRoot
	}
	last := len(names) - 1
	if err := checkName(names[last]); err != nil {
		return err
	}
	parent, err := t.descend(names[:last], make)
	if err != nil {
		return err
	}
	return errors.Join(act(at{parent, names[last]}), parent.Close())
}
