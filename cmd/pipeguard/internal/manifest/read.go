package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/internal/atmost"
	"github.com/pipeguard/pipeguard/internal/plainyaml"
)

// MaxSize bounds one file, in bytes: the whole of it is held in memory, several times over while it is converted.
const MaxSize = 64 << 20

// MaxObjects bounds the objects of one file and the documents in it, faults among them: each takes more memory than the few bytes that begin one.
const MaxObjects = 100_000

// bounds are MaxSize and MaxObjects.
type bounds struct{ size, objects int }

func (b bounds) tooMany() error {
	return fmt.Errorf("more than %d documents or objects in one file: the rest is not read", b.objects)
}

// Read returns the objects of a file, the items of Lists one by one, and every fault that it found.
// YAML is read past a fault up to the next document, JSON is not.
func Read(file string, r io.Reader) ([]Object, []Fault) {
	return bounds{MaxSize, MaxObjects}.read(file, r)
}

func (b bounds) read(file string, r io.Reader) ([]Object, []Fault) {
	start := Place{File: file, Document: 1, Line: 1}
	data, err := atmost.ReadAll(r, int64(b.size))
	switch {
	case err != nil:
		return nil, []Fault{{start, err}}
	case !utf8.Valid(data):
		return nil, []Fault{{start, errors.New("not UTF-8")}}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if first := bytes.TrimLeft(data, " \t\r\n"); len(first) > 0 && first[0] == '{' {
		found, faults, isJSON := b.readJSON(file, data)
		if isJSON {
			return found, faults
		}
	}
	found, faults := b.readYAML(file, data)
	if len(found) == 0 && len(faults) == 0 {
		faults = []Fault{{start, errors.New("no objects in this file")}}
	}
	return found, faults
}

func (b bounds) readYAML(file string, data []byte) (found []Object, faults []Fault) {
	number, chunks := 0, 0
	for c := range split(data) {
		place := Place{File: file, Document: number + 1, Line: c.line}
		if chunks++; chunks > b.objects || len(found)+len(faults) > b.objects {
			return found, append(faults, Fault{place, b.tooMany()})
		}
		if c.err != nil {
			number++
			faults = append(faults, Fault{place, c.err})
			continue
		}
		doc, err := oneDocument(c.text)
		if err == nil && doc == nil {
			continue // comments only
		}
		number++
		if err != nil {
			faults = append(faults, Fault{place, err})
			continue
		}
		o, f := b.objectsOf(place, doc, 0)
		for i := range o {
			o[i].YAML = c.text
		}
		found, faults = append(found, o...), append(faults, f...)
	}
	return found, faults
}

// oneDocument converts the text between two separators, nil if there is nothing in it. Text in which a YAML
// parser sees a second document is refused: kubectl would send only the first, and a reader sees both.
func oneDocument(text []byte) ([]byte, error) {
	doc, err := yaml.YAMLToJSONStrict(text) // reads the first
	if err != nil {
		return nil, within(err)
	}
	if line, err := plainyaml.Second(text); err != nil || line > 0 {
		return nil, errors.New(`a second document that no line "---" separates from the first`)
	}
	if string(doc) == "null" {
		return nil, nil
	}
	return doc, nil
}

// within says that the parser counts lines from the start of the document, and puts its errors on one line.
func within(err error) error {
	return fmt.Errorf("lines counted within the document: %s", strings.Join(strings.Fields(err.Error()), " "))
}

type chunk struct {
	text []byte
	line int
	err  error
}

// split cuts at lines that begin with "---", as kubectl does, and like it refuses
// anything but a comment behind the dashes.
func split(data []byte) iter.Seq[chunk] {
	return func(yield func(chunk) bool) {
		current := chunk{line: 1}
		for n := 1; len(data) > 0; n++ {
			line, rest, _ := bytes.Cut(data, []byte("\n"))
			if after, isSeparator := bytes.CutPrefix(line, []byte("---")); isSeparator {
				if !yield(current) {
					return
				}
				current = chunk{line: n + 1}
				if after = bytes.TrimSpace(after); len(after) > 0 && after[0] != '#' {
					current.err = fmt.Errorf(`nothing but a comment may follow "---" on its line, and here %q does`, after)
				}
			} else {
				current.text = append(append(current.text, line...), '\n')
			}
			data = rest
		}
		yield(current)
	}
}
