package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/manifest"
)

// readInputs reads the objects of files, of directories (their *.yaml, *.yml and *.json, not deeper)
// and, for "-", of standard input.
func readInputs(names []string, stdin io.Reader) (objects []manifest.Object, faults []manifest.Fault) {
	for _, name := range names {
		files, err := filesOf(name)
		if err != nil {
			faults = append(faults, manifest.Fault{Place: manifest.Place{File: name, Document: 1, Line: 1}, Err: err})
			continue
		}
		for _, file := range files {
			o, f := readInput(file, stdin)
			objects, faults = append(objects, o...), append(faults, f...)
		}
	}
	return objects, faults
}

func filesOf(name string) ([]string, error) {
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

func readInput(name string, stdin io.Reader) ([]manifest.Object, []manifest.Fault) {
	if name == "-" {
		return manifest.Read("standard input", stdin)
	}
	f, err := os.Open(name) //nolint:gosec // reading the files that the user names is what this program is for
	if err != nil {
		return nil, []manifest.Fault{{Place: manifest.Place{File: name, Document: 1, Line: 1}, Err: err}}
	}
	defer f.Close() //nolint:errcheck // only read
	return manifest.Read(name, f)
}
