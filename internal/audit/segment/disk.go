package segment

import (
	"context"
	"io"
)

// Disk is the directory of a log, and this process its only writer until Close.
type Disk interface {
	// Names are the files of the directory, in any order.
	Names() ([]string, error)
	// Create makes a file that must not be there, open for appending, its name durable when Create returns.
	// It refuses when the directory no longer belongs to this writer.
	Create(name string) (File, error)
	// Read opens a file and tells its size in bytes.
	Read(name string) (io.ReadCloser, int64, error)
	// Flush makes durable what an earlier process has written to a file.
	Flush(name string) error
	// Release gives back what was allocated behind the end of a file that is closed. No byte of it is cut off.
	Release(name string) error
	// Remove deletes a file, durably.
	Remove(name string) error
	Close() error
}

// File is the segment that is being written.
type File interface {
	io.WriteCloser
	Sync() error
	// Allocate reserves disk space for the bytes from offset on, behind the end of the file, without making it longer.
	// Later writes there do not fail for want of space. errors.ErrUnsupported means that the file system cannot.
	Allocate(offset, length int64) error
	// IsHere says whether the name still leads to this file, and the directory is still this writer's.
	IsHere() bool
}

// untilDone is a Disk whose reads fail once its context has ended.
type untilDone struct {
	Disk
	ctx context.Context
}

func (d untilDone) Read(name string) (io.ReadCloser, int64, error) {
	if err := d.ctx.Err(); err != nil {
		return nil, 0, err
	}
	r, size, err := d.Disk.Read(name)
	if err != nil {
		return nil, 0, err
	}
	return UntilDone(d.ctx, r), size, nil
}

// UntilDone returns a reader whose reads fail once ctx has ended. It can seek if r can.
func UntilDone(ctx context.Context, r io.ReadCloser) io.ReadCloser {
	until := readerUntilDone{r, ctx}
	if s, ok := r.(io.Seeker); ok {
		return struct {
			readerUntilDone
			io.Seeker
		}{until, s}
	}
	return until
}

type readerUntilDone struct {
	io.ReadCloser
	ctx context.Context
}

func (r readerUntilDone) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.ReadCloser.Read(p)
}
