package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// format is the value of a flag -o.
type format string

const (
	formatText format = "text"
	formatJSON format = "json"
)

// String, Set and Type make format a flag value.
func (f *format) String() string { return string(*f) }

// Set refuses everything but text and json.
func (f *format) Set(s string) error {
	if s != string(formatText) && s != string(formatJSON) {
		return fmt.Errorf("must be text or json")
	}
	*f = format(s)
	return nil
}

// Type names the values in help texts.
func (f *format) Type() string { return "text|json" }

func addFormat(cmd *cobra.Command) *format {
	f := formatText
	cmd.Flags().VarP(&f, "output", "o", "output format; json is stable, see above")
	completes(cmd, "output", string(formatText), string(formatJSON))
	return &f
}

// print writes what a command has found.
func (f format) print(cmd *cobra.Command, report any, asText func(*printer)) *printer {
	p := &printer{w: cmd.OutOrStdout()}
	if f == formatJSON {
		p.json(report)
	} else {
		asText(p)
	}
	return p
}

// printer collects the first error of many writes: a full disk or a closed pipe must not look like success.
type printer struct {
	w   io.Writer
	err error
}

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

// some prints the first of many lines, each with its label.
func (p *printer) some(label string, lines []string, form string) {
	for i, line := range lines {
		if i == maxNamedLines {
			p.printf("%-12s and %d more\n", label, len(lines)-i)
			return
		}
		p.printf("%-12s "+form+"\n", label, inert.Line(line))
	}
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
