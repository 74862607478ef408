package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Copy is a file of the host that is kept as it is somewhere else.
type Copy struct {
	// From is read, and written to To, which lies in Want.Data.
	From, To string
	// Read returns the content of a file, bounded, or why it is refused.
	Read func(file string) ([]byte, error)
}

// Incomplete is an error of Copy.Read beside a content that is put in place all the same. It says what is missing from it.
type Incomplete struct{ Err error }

// Error implements error.
func (e *Incomplete) Error() string { return e.Err.Error() }

// Unwrap is what errors.Is asks.
func (e *Incomplete) Unwrap() error { return e.Err }

// newContent is the content that a file is to have.
type newContent struct {
	path string
	text []byte
}

// check reports what is wrong with a copy that is wanted.
func (c Copy) check(data string) error {
	if c.From == "" || c.To == "" || c.Read == nil {
		return fmt.Errorf("a copy from %q to %q: want both, and how it is read", c.From, c.To)
	}
	if filepath.Dir(c.To) != filepath.Clean(data) {
		return fmt.Errorf("a copy to %s: want a file in %s", c.To, data)
	}
	return nil
}

// next returns the content to put in place, or nil if it is there, and what Read reports. A file that another account can change is replaced, even
// by the same content: that account could change it later.
func (c Copy) next(checkWriters func(file string) error) (*newContent, error) {
	text, refused := c.Read(c.From)
	if incomplete := (*Incomplete)(nil); refused != nil && !errors.As(refused, &incomplete) {
		return nil, refused
	}
	installed, err := os.ReadFile(c.To)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(refused, fmt.Errorf("read what is installed: %w", err))
	}
	if err == nil && bytes.Equal(text, installed) && checkWriters(c.To) == nil {
		return nil, refused
	}
	return &newContent{c.To, text}, refused
}

// needed returns the new contents of files that the service needs.
func (i *Installer) needed() ([]newContent, error) {
	var files []newContent
	for _, c := range i.want.Needed {
		f, err := c.next(i.parts.CheckWriters)
		if err != nil {
			return nil, fmt.Errorf("%s is refused; nothing was changed: %w", filepath.Base(c.To), err)
		}
		if f != nil {
			files = append(files, *f)
		}
	}
	return files, nil
}

// deliver puts data in place. The service notices it and verifies it by itself, so that a configuration with a fault keeps
// no data from it. Data that is not there leaves what was delivered before.
func (i *Installer) deliver() (changed bool, err error) {
	var errs []error
	for _, c := range i.want.Delivered {
		f, err := c.next(i.parts.CheckWriters)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("%s is not delivered as a whole: %w", filepath.Base(c.To), err))
		}
		if f == nil {
			continue
		}
		if err := f.place(); err != nil {
			errs = append(errs, err)
			continue
		}
		changed = true
		i.parts.Say("%s delivered", c.To)
	}
	return changed, errors.Join(errs...)
}

// place puts the content in place in one step.
func (f newContent) place() error {
	r, err := prepare(f.path, bytes.NewReader(f.text), 0o600)
	if err == nil {
		if err = r.over(); err != nil {
			err = errors.Join(err, r.undo())
		}
	}
	if err != nil {
		return fmt.Errorf("put %s in place: %w", f.path, err)
	}
	return nil
}
