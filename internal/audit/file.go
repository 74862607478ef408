package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"
)

// FileOptions say how a File writes. The zero value is the safe choice.
type FileOptions struct {
	// NoSync leaves it to the operating system when a record reaches the disk. A crash of the
	// machine may then lose records of operations that were carried out.
	NoSync bool
	// Now is the clock for records that carry no time; nil means time.Now.
	Now func() time.Time
	// OnMoved is told that the file is no longer at its path, and why no new one could be begun there, or nil.
	// It must not call the File. Nil means that nobody wants to know.
	OnMoved func(error)

	// open is replaced by tests that need a disk that fails.
	open func(path string) (handle, error)
}

// handle is what a File needs of an open file.
type handle interface {
	io.WriteCloser
	io.ReaderAt
	Stat() (fs.FileInfo, error)
	Sync() error
	Truncate(size int64) error
}

// File writes records to one file, one line of JSON each. Each time it is opened a session begins:
// a new random id, numbers from 1, and as record 1 a LogOpen that says how the file ended before.
//
// A write that fails may have left half a line behind, and a failed fsync must not be tried again
// (the kernel may have dropped the pages and report success the second time). So one failure ends
// the session: every later Append returns an error until Reopen has begun a new one.
//
// A file has one writer: a second one, in this process or another, is refused with ErrInUse. A file that is moved
// away or removed while it is written to is left, and the next record begins a session in a new file at the path; with
// NoSync, some records may go on into the old one for lookInterval.
type File struct {
	path    string
	options FileOptions

	mu      sync.Mutex // guards what follows, and keeps numbers and lines in the same order
	file    handle
	opened  fs.FileInfo // of file, to know it by
	session string
	seq     uint64
	err     error // why no more records are taken, nil while they are
	closed  bool
	line    []byte    // memory for the next record
	looked  time.Time // when the path was last compared with the file, for NoSync
}

var _ Writer = (*File)(nil)

// lookInterval is how often a file whose records are not flushed is looked for at its path: to look before each takes as
// long as half of the record. Beside a flush it is nothing, so records that must be durable are never written blindly.
const lookInterval = 20 * time.Millisecond

// OpenFile opens or creates the file at path for appending, with mode 0600 in a directory that is
// created with mode 0700 if it is missing. It refuses links, and files that other users may write to.
// On Windows the access list of the directory decides who may read and write it.
func OpenFile(path string, o FileOptions) (*File, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.open == nil {
		o.open = openAppend
	}
	f := &File{path: path, options: o}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(); err != nil {
		return nil, err
	}
	return f, nil
}

// Append implements Writer. It does not wait for ctx, but refuses one that has already ended.
func (f *File) Append(ctx context.Context, event *Event) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("append to audit log: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.follow()
	return f.append(*event, "")
}

// follow begins a session in a new file if the present one is no longer at the path: records in a file that nobody can
// find are lost. A new file that cannot be opened is why Append then refuses. f.mu must be held.
func (f *File) follow() {
	if f.err != nil || f.options.NoSync && time.Since(f.looked) < lookInterval {
		return
	}
	f.looked = time.Now()
	if isAt(f.path, f.opened) {
		return
	}
	_, _ = f.append(Event{Type: TypeLog, Stage: StageLogClose}, "") // for whoever moved it; nothing depends on it
	f.err = errMoved
	err := f.reopen() // kept in f.err too
	if f.options.OnMoved != nil {
		f.options.OnMoved(err)
	}
}

// append writes one record; prefix goes before it in the same write. f.mu must be held.
func (f *File) append(e Event, prefix string) (uint64, error) {
	if f.err != nil {
		return 0, fmt.Errorf("audit log %s takes no records: %w", f.path, f.err)
	}
	e.stamp(f.session, f.seq+1, f.options.Now)
	line, err := Encode(f.line, e)
	if err != nil {
		return 0, err
	}
	f.line = line
	if prefix != "" {
		line = append([]byte(prefix), line...)
	}
	n, err := f.file.Write(line)
	if err == nil && n < len(line) {
		err = io.ErrShortWrite
	}
	if err == nil && !f.options.NoSync {
		err = f.file.Sync()
	}
	if err != nil {
		f.err = err
		return e.Seq, fmt.Errorf("append to audit log %s: %w", f.path, err)
	}
	f.seq = e.Seq
	return e.Seq, nil
}

// begin opens the file and starts a session. f.mu must be held.
func (f *File) begin() error {
	file, err := f.options.open(f.path)
	if err != nil {
		return fmt.Errorf("open audit log %s: %w", f.path, err)
	}
	opened, err := file.Stat()
	if err != nil {
		return fmt.Errorf("open audit log %s: %w", f.path, errors.Join(err, file.Close()))
	}
	end, needsNewline, err := readTail(file)
	if err != nil {
		return fmt.Errorf("read the end of audit log %s: %w", f.path, errors.Join(err, file.Close()))
	}
	f.file, f.opened, f.session, f.seq, f.err = file, opened, rand.Text(), 0, nil
	// A torn last line gets its newline here, so that it spoils no record of ours.
	prefix := ""
	if needsNewline {
		prefix = "\n"
	}
	if _, err := f.append(Event{Type: TypeLog, Stage: StageLogOpen, Log: &end}, prefix); err != nil {
		f.file = nil
		// Attempts on a full disk must not leave a heap of torn lines, of which the next opening declares only the last.
		// What is cut off was written here and acknowledged to nobody, and nobody else writes to the file.
		return errors.Join(err, cutBack(file, opened.Size()), file.Close())
	}
	return nil
}

func cutBack(file handle, size int64) error {
	info, err := file.Stat()
	if err != nil || info.Size() == size {
		return err
	}
	return file.Truncate(size)
}

// Err returns why the file takes no records, or nil while it does.
func (f *File) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Reopen begins a new session if the present one has failed, and does nothing if it has not.
func (f *File) Reopen() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reopen()
}

// reopen is Reopen. f.mu must be held.
func (f *File) reopen() error {
	if f.closed || f.err == nil {
		return f.err
	}
	if f.file != nil {
		_ = f.file.Close() // what it would report is known already: this session has failed
		f.file = nil
	}
	err := f.begin()
	if err != nil {
		f.err = err // the newest reason; the first one was returned when it happened
	}
	return err
}

// Close writes a LogClose record and closes the file. Later calls of Append return fs.ErrClosed.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	var errs []error
	if f.err == nil {
		_, err := f.append(Event{Type: TypeLog, Stage: StageLogClose}, "")
		errs = append(errs, err)
	}
	if f.file != nil {
		errs = append(errs, f.file.Close())
	}
	f.err = fs.ErrClosed
	return errors.Join(errs...)
}

// stamp sets what a writer decides about a record.
func (e *Event) stamp(session string, seq uint64, now func() time.Time) {
	if e.Time.IsZero() {
		e.Time = now()
	}
	e.V, e.Session, e.Seq, e.Time = Version, session, seq, e.Time.UTC()
}
