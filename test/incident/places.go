package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// nodeName is the node of the story.
const nodeName = "win-01"

// places are the files of one run. What is on the node is apart from what a reviewer is given.
type places struct{ dir string }

// newPlaces takes a directory that holds nothing: nothing that somebody needs is written over.
func newPlaces(dir string) (places, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = os.MkdirAll(dir, 0o700)
	case err == nil && len(entries) > 0:
		err = fmt.Errorf("%s is not empty", dir)
	}
	if err != nil {
		return places{}, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return places{}, err
	}
	p := places{dir}
	for _, made := range []string{p.node(), p.elsewhere()} {
		if err := os.Mkdir(made, 0o700); err != nil {
			return places{}, err
		}
	}
	return p, nil
}

func (p places) node() string       { return filepath.Join(p.dir, "node") }
func (p places) log() string        { return filepath.Join(p.node(), "audit") }
func (p places) signingKey() string { return filepath.Join(p.node(), "audit-signing.key") }
func (p places) cluster() string    { return filepath.Join(p.node(), "cluster") }
func (p places) witnessed() string  { return filepath.Join(p.dir, "witness") }

// elsewhere is what nobody on the node can change.
func (p places) elsewhere() string  { return filepath.Join(p.dir, "elsewhere") }
func (p places) keys() string       { return filepath.Join(p.elsewhere(), "keys.pub") }
func (p places) checkpoint() string { return filepath.Join(p.elsewhere(), nodeName+".checkpoint") }

// The three logs that a reviewer may be given.
func (p places) evidence() string   { return filepath.Join(p.dir, "evidence") }
func (p places) edited() string     { return filepath.Join(p.dir, "evidence-edited") }
func (p places) rolledBack() string { return filepath.Join(p.dir, "evidence-rolled-back") }
