package winhost

import (
	"errors"
	"io/fs"
)

// exists does not follow the last name. What lies beneath a file or beneath nothing does not exist;
// what lies beneath a link is not looked at, which is an error and not an answer.
func (t tree) exists(names []string) (bool, error) {
	if len(names) == 0 {
		root, err := t.descend(nil, false)
		if err != nil {
			return absent(err)
		}
		return true, root.Close()
	}
	err := t.with(names, func(at at) error {
		_, err := at.parent.Stat(at.name)
		return err
	})
	if err != nil {
		return absent(err)
	}
	return true, nil
}

// absent turns the errors that mean absence into an answer.
func absent(err error) (bool, error) {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
		return false, nil
	}
	return false, err
}

// isLink is true for a link or mount point whose target exists, false for one whose target is gone
// and for everything else, and an error for a name that is not there. reach looks at what is on shares.
func (t tree) isLink(names []string, reach func(text string) (bool, error)) (isLink bool, err error) {
	if len(names) == 0 {
		root, err := t.descend(nil, false)
		if err != nil {
			return false, err
		}
		return false, root.Close()
	}
	err = t.with(names, func(at at) error {
		entry, err := at.parent.Stat(at.name)
		if err != nil || entry.kind != link && entry.kind != mount {
			return err
		}
		text, err := at.parent.Readlink(at.name)
		if err != nil {
			return err
		}
		if onShare(text) {
			isLink, err = reach(text)
		} else {
			isLink, err = at.parent.TargetExists(text)
		}
		return err
	})
	return isLink, err
}
