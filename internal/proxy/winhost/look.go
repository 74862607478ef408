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
