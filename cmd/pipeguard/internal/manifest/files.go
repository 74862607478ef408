package manifest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// ReadFiles reads the objects of files, of directories (their *.yaml, *.yml and *.json, not deeper)
// and, for "-", of standard input.
func ReadFiles(names []string, stdin io.Reader) (objects []Object, faults []Fault) {
	for _, name := range names {
		files, err := Files(name)
		if err != nil {
			faults = append(faults, Fault{Place: Place{File: name, Document: 1, Line: 1}, Err: err})
			continue
		}
		for _, file := range files {
			o, f := readFile(file, stdin)
			objects, faults = append(objects, o...), append(faults, f...)
		}
	}
	return objects, faults
}

// Files names the files to read for one name of a command line: itself, or the files of a directory.
func Files(name string) ([]string, error) {
	if name == "-" {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(name, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no *.yaml, *.yml or *.json in this directory")
	}
	return files, nil
}

func readFile(name string, stdin io.Reader) ([]Object, []Fault) {
	if name == "-" {
		return Read("standard input", stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, []Fault{{Place: Place{File: name, Document: 1, Line: 1}, Err: err}}
	}
	defer f.Close() //nolint:errcheck // only read
	return Read(name, f)
}
