package main

import (
	"context"
	"errors"
	"os"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
)

// recordsBytes is about the size of the two records of a call.
const recordsBytes = 2 * 860

// flusher does what is the least that a durable record of a call can cost: each caller appends to a file of its own, and flushes it.
type flusher struct {
	files []*os.File
	bytes [recordsBytes]byte
}

func newFlusher(dir string, callers int) (*flusher, error) {
	f := &flusher{}
	for range callers {
		file, err := os.CreateTemp(dir, "flushed")
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		f.files = append(f.files, file)
	}
	return f, nil
}

// after returns a call after which its caller flushes once.
func (f *flusher) after(do func(context.Context, v1.FilesystemClient, int) error) func(context.Context, v1.FilesystemClient, int) error {
	return func(ctx context.Context, c v1.FilesystemClient, caller int) error {
		if err := do(ctx, c, caller); err != nil {
			return err
		}
		_, err := f.files[caller].Write(f.bytes[:])
		return errors.Join(err, f.files[caller].Sync())
	}
}

// Close closes the files.
func (f *flusher) Close() error {
	var errs []error
	for _, file := range f.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
