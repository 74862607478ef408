package winhost

import (
	"errors"
	"fmt"
	"io"
)

// held is with, while the working directory and every directory below it on the way to the last name are held: for as long as act
// runs, the path leads to the place that act is given. It is for functions of the system that take a path and follow
// links in it. What the last name itself stands for is not held.
func (t tree) held(names []string, act func(at) error) (err error) {
	if len(names) == 0 {
		return errRoot
	}
	last := len(names) - 1
	if err := checkName(names[last]); err != nil {
		return err
	}
	current, err := t.descend(nil, false)
	if err != nil {
		return err
	}
	open := []io.Closer{current}
	defer func() {
		for _, o := range open {
			err = errors.Join(err, o.Close())
		}
	}()
	for i, name := range names {
		hold, err := current.Hold()
		if err != nil {
			return fmt.Errorf("hold the directory of %s: %w", name, err)
		}
		open = append(open, hold)
		if i == last {
			break
		}
		next, err := step(current, name, false)
		if err != nil {
			return err
		}
		open, current = append(open, next), next
	}
	return act(at{current, names[last]})
}
