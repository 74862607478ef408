package query

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// Source is a log to read: files in the order of their records.
type Source struct {
	files []string // "-" is standard input
	stdin io.Reader
}

// Open finds the files of a log. A name is a file, a directory of segments, or - for stdin. Names are read in the order given.
func Open(names []string, stdin io.Reader) (*Source, error) {
	s := &Source{stdin: stdin}
	for _, name := range names {
		if name == "-" {
			if slices.Contains(s.files, "-") {
				return nil, errors.New("standard input can be read once")
			}
			s.files = append(s.files, name)
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			s.files = append(s.files, name)
			continue
		}
		found, err := segments(name)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s holds no segments: no file named audit-<20 digits>-<id>.jsonl", name)
		}
		s.files = append(s.files, withoutVoid(found)...)
	}
	if len(s.files) == 0 {
		return nil, errors.New("no log is named")
	}
	return s, nil
}

// segments returns the segments of a directory by the numbers of their first records. Other files are none of the log. What has the name
// of a segment and is no file is a fault: a link leads out of the directory, and to open a named pipe waits for ever.
func segments(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if _, ok := segment.ParseName(e.Name()); !ok {
			continue
		}
		name := filepath.Join(dir, e.Name())
		if !e.Type().IsRegular() {
			return nil, fmt.Errorf("%s has the name of a segment, and is not a regular file", name)
		}
		found = append(found, name)
	}
	return found, nil
}

// Files are the files that are read, in order.
func (s *Source) Files() []string { return slices.Clone(s.files) }

// Records returns all records in order, as Read does.
func (s *Source) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for i, name := range s.files {
			next := ""
			if i+1 < len(s.files) {
				next = s.files[i+1]
			}
			if !s.file(name, next, yield) {
				return
			}
		}
	}
}

func (s *Source) file(name, next string, yield func(Record, error) bool) (more bool) {
	r := s.stdin
	if name != "-" {
		f, err := os.Open(name) //nolint:gosec // the user names what to read
		if err != nil {
			yield(Record{}, err)
			return false
		}
		defer f.Close() //nolint:errcheck // only read
		r = io.LimitReader(f, ofTheLog(f, next))
	}
	for record, err := range Read(name, r) {
		if !yield(record, err) {
			return false
		}
		if bad := new(*BadLine); err != nil && !errors.As(err, bad) {
			return false
		}
	}
	return true
}
