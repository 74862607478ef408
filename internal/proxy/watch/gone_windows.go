package watch

import (
	"errors"
	"io/fs"
)

// isGone says that there is no such pipe any more.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
