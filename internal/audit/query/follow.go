package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// ErrEnd comes from Follow each time that all there is has been read, once before each wait.
var ErrEnd = errors.New("end of the log for now")

// Follow returns the records of a file or of a directory of segments, and those that are added, until ctx is done. It looks each
// interval: a copied file, a network drive and a container's mount tell of changes in no way that all systems share. A segment
// is left for the next one only after it was read to its end once more: its writer closes it before it begins another.
func Follow(ctx context.Context, name string, interval time.Duration) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		f := follower{ctx: ctx, name: name, interval: interval, yield: yield}
		if err := f.run(); err != nil && !errors.Is(err, errStopped) {
			yield(Record{}, err)
		}
	}
}

var errStopped = errors.New("nobody reads on")

type follower struct {
	ctx      context.Context // of one Follow
	name     string
	interval time.Duration
	yield    func(Record, error) bool
	chain    chain
	// isDirectory says that all of a log is read, from its first record that is there on.
	isDirectory bool
}

func (f *follower) run() error {
	info, err := os.Stat(f.name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return f.file(part{Part: evidence.Part{Path: f.name, Bytes: -1}}, func() (part, error) { return part{}, nil })
	}
	f.isDirectory = true
	if _, err := segments(f.name); err != nil {
		return err
	}
	read := map[string]bool{} // names of segments
	for {
		next, err := f.after(read)
		switch {
		case err != nil:
			return err
		case next.Path == "":
			if err := f.wait(); err != nil {
				return err
			}
			continue
		}
		read[next.Path] = true
		if err := f.file(next, func() (part, error) { return f.after(read) }); err != nil {
			return err
		}
	}
}

// segments are the parts of the log in a directory, which may have none yet.
func segments(dir string) ([]part, error) {
	l := &Log{Names: []string{dir}}
	if err := l.list(evidence.List); err != nil {
		return nil, err
	}
	return l.parts, nil
}

// after returns the first segment that was not read yet and does not lie before one that was; none has no path.
func (f *follower) after(read map[string]bool) (part, error) {
	entries, _, err := segment.List(f.name)
	if err != nil {
		return part{}, err
	}
	if len(read) > 0 && !slices.ContainsFunc(entries, func(e segment.Entry) bool { return !read[filepath.Join(f.name, e.File)] }) {
		return part{}, nil // the usual answer, for which no file is opened
	}
	parts, err := segments(f.name)
	if err != nil {
		return part{}, err
	}
	last := uint64(0)
	for _, p := range parts {
		if read[p.Path] {
			last = p.First
		}
	}
	for _, p := range parts {
		if !read[p.Path] && p.First >= last {
			return p, nil
		}
	}
	return part{}, nil
}

// limit is how many bytes of a segment are of the log, as the segments say that are there now.
func (f *follower) limit(name string) (int64, error) {
	parts, err := segments(f.name)
	if err != nil {
		return 0, err
	}
	for _, p := range parts {
		if p.Path == name && p.Bytes >= 0 {
			return p.Bytes, nil
		}
	}
	return math.MaxInt64, nil
}

// file reads one file for as long as it is the last. newer is the segment behind it, without a path if there is none.
func (f *follower) file(p part, newer func() (part, error)) error {
	in, _, err := p.open(nil)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	l := p.lines(in)
	for next := (part{}); ; {
		if l.ended == nil {
			record, err := l.next()
			switch {
			case err == nil || errors.As(err, new(*BadLine)):
				if !f.give(record, err) {
					return errStopped
				}
				continue
			case l.ended == nil && !errors.Is(err, io.EOF):
				return err
			}
		}
		if next.Path != "" {
			limit, err := f.limit(p.Path)
			if err != nil {
				return err
			}
			why := l.ended
			if why == nil {
				why = audit.ErrTorn
			}
			if l.length > 0 && l.whole < limit && !f.give(Record{}, l.bad(why)) {
				return errStopped
			}
			return nil
		}
		if next, err = newer(); err != nil {
			return err
		}
		if next.Path != "" {
			continue // what was written between the last look and the closing
		}
		if err := f.wait(); err != nil {
			return err
		}
		if err := notShorter(p.Path, l.whole+int64(l.length)); err != nil {
			return err
		}
	}
}

func (f *follower) give(r Record, err error) bool {
	before := f.chain.seq
	if r.Loose = f.chain.next(r, err); f.isDirectory {
		r.Missing = f.chain.missing(before, r, err)
	}
	return f.yield(r, err)
}

// notShorter refuses a file that lost what was read: a log only grows.
func notShorter(name string, read int64) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if info.Size() < read && !strings.HasSuffix(name, segment.Packed) {
		return fmt.Errorf("%s has become shorter while it was read: %d bytes are there, %d were", name, info.Size(), read)
	}
	return nil
}

func (f *follower) wait() error {
	if !f.yield(Record{}, ErrEnd) {
		return errStopped
	}
	timer := time.NewTimer(f.interval)
	defer timer.Stop()
	select {
	case <-f.ctx.Done():
		return errStopped
	case <-timer.C:
		return nil
	}
}
