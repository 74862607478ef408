package winhost

import (
	"errors"
	"io/fs"
)

// exists does not follow the last name. A name beneath a file or a missing directory does not exist;
// a name beneath a link is an error.
func (t tree) exists(names []string) (bool, error) {
	var err error
	if len(names) == 0 {
		err = t.openable()
	} else {
		err = t.with(names, func(at at) error {
			_, err := at.parent.Stat(at.name)
			return err
		})
	}
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
