package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// Printer writes output and keeps the first error: a full disk or a closed pipe must not look like success.
type Printer struct {
	w   io.Writer
	Err error // the first one of a write
}

// NewPrinter returns a printer that writes to w.
func NewPrinter(w io.Writer) *Printer { return &Printer{w: w} }

// Printf writes text, unless a write failed before.
func (p *Printer) Printf(format string, args ...any) {
	if p.Err == nil {
		_, p.Err = fmt.Fprintf(p.w, format, args...)
	}
}

// JSON writes an indented JSON document.
func (p *Printer) JSON(v any) { p.document(inert.MarshalIndent(v)) }

// JSONLine writes a JSON document on one line.
func (p *Printer) JSONLine(v any) { p.document(inert.Marshal(v)) }

func (p *Printer) document(doc []byte, err error) {
	if p.Err == nil {
		p.Err = err
	}
	p.Printf("%s", doc)
}

// Done returns result unless writing failed, which is reported as an input that could not be answered.
func (p *Printer) Done(result error) error {
	if p.Err != nil {
		return BadInput(fmt.Errorf("write output: %w", p.Err))
	}
	return result
}

// Answer is Done for a yes or a no.
func (p *Printer) Answer(isYes bool) error {
	if !isYes {
		return p.Done(No(nil))
	}
	return p.Done(nil)
}

// Replaceable refuses an output file that is one of the input files, under any name, or not a regular file: a link in a copied directory
// can lead anywhere.
func Replaceable(name string, read []string) error {
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
