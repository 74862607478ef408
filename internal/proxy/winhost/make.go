package winhost

import (
	"errors"
	"fmt"
	"io/fs"
)

// mkdir makes a directory and its missing parents. A directory that is there is success, and so is a mount
// point: drivers make their staging directory again when its volume is already mounted on it.
func (t tree) mkdir(names []string) error {
	if len(names) == 0 {
		return t.openable()
	}
	return t.within(names, true, mkdirAt)
}

func mkdirAt(at at) error {
	err := at.parent.Mkdir(at.name)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	entry, statErr := at.parent.Stat(at.name)
	if statErr != nil {
		return statErr
	}
	if entry.kind == directory || entry.kind == mount {
		return nil
	}
	return fmt.Errorf("%s: there is something that is not a directory: %w", at.name, err)
}

// link makes names a link with the given text, or leaves the one that has it already.
// same compares texts as the host compares paths.
func (t tree) link(names []string, text string, directory bool, same func(a, b string) bool) error {
	return t.with(names, func(at at) error {
		err := at.parent.Link(at.name, text, directory)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		return isLink(at, text, same)
	})
}

// isLink returns nil for a link with the given text, and fs.ErrExist for everything else that a name stands for.
func isLink(at at, text string, same func(a, b string) bool) error {
	entry, err := at.parent.Stat(at.name)
	if err != nil {
		return err
	}
	if entry.kind != link {
		return fmt.Errorf("%s: there is something that is not a link: %w", at.name, fs.ErrExist)
	}
	old, err := at.parent.Readlink(at.name)
	if err != nil {
		return err
	}
	if !same(old, text) {
		return fmt.Errorf("%s: there is a link to %s: %w", at.name, old, fs.ErrExist)
	}
	return nil
}

// isDirectory says whether a link to names should be one to a directory. What does not exist yet
// is taken for a file, as os.Symlink does.
func (t tree) isDirectory(names []string) (is bool, err error) {
	if len(names) == 0 {
		return true, nil
	}
	err = t.with(names, func(at at) error {
		entry, err := at.parent.Stat(at.name)
		is = entry.kind == directory || entry.directory
		return err
	})
	if err != nil {
		return absent(err)
	}
	return is, nil
}
