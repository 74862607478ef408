package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// printer collects the first error of many writes: a full disk or a closed pipe must not look like success.
type printer struct {
	w   io.Writer
	err error
}

// newPrinter writes to w.
func newPrinter(w io.Writer) *printer { return &printer{w: w} }

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) json(v any) {
	doc, err := inert.MarshalIndent(v)
	if err != nil && p.err == nil {
		p.err = err
	}
	p.printf("%s", doc)
}

func (p *printer) jsonLine(v any) {
	doc, err := inert.Marshal(v)
	if err != nil && p.err == nil {
		p.err = err
	}
	p.printf("%s", doc)
}

// done returns result unless writing failed, which is reported as an input that could not be answered.
func (p *printer) done(result error) error {
	if p.err != nil {
		return badInput(fmt.Errorf("write output: %w", p.err))
	}
	return result
}

// answer is done for a question: it is a "no", or not.
func (p *printer) answer(isYes bool) error {
	if !isYes {
		return p.done(no(nil))
	}
	return p.done(nil)
}

// replaceable refuses an output that would replace one of the files that are read, by whatever name, or what is no file: a link in a copied
// directory leads anywhere.
func replaceable(name string, read []string) error {
	info, err := os.Lstat(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is there already and is not a regular file: it is not replaced", name)
	}
	for _, file := range read {
		if other, err := os.Stat(file); err == nil && os.SameFile(info, other) {
			return fmt.Errorf("%s is there already and is one of the files that are read: it is not replaced", name)
		}
	}
	return nil
}

// replaceFile writes a file beside name and renames it, so that a reader has the old content or the new, and a hard link to the old file keeps its content.
func replaceFile(name string, mode os.FileMode, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".pipeguard-*")
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Close()); err == nil {
		err = os.Chmod(f.Name(), mode)
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
