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
		next, err := step(current, name, make)
		err = errors.Join(err, current.Close())
		if err != nil {
			if next != nil {
				err = errors.Join(err, next.Close())
			}
			return nil, err
		}
		current = next
	}
	return current, nil
}

func step(from dir, name string, make bool) (dir, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	next, err := from.Open(name)
	if make && errors.Is(err, fs.ErrNotExist) {
		// Somebody else may make it first; then it is theirs that is opened and checked.
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
func (t tree) with(names []string, act func(at) error) error {
	if len(names) == 0 {
		return errRoot
	}
	last := len(names) - 1
	if err := checkName(names[last]); err != nil {
		return err
	}
	parent, err := t.descend(names[:last], false)
	if err != nil {
		return err
	}
	return errors.Join(act(at{parent, names[last]}), parent.Close())
}
