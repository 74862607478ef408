package query

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
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
}

func (f *follower) run() error {
	info, err := os.Stat(f.name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return f.file(f.name, func() string { return "" })
	}
	found, err := segments(f.name)
	if err != nil {
		return err
	}
	void := map[string]bool{}
	for _, name := range found {
		addVoid(void, name)
	}
	last := ""
	for {
		next, err := after(f.name, last)
		switch {
		case err != nil:
			return err
		case next == "":
			if err := f.wait(); err != nil {
				return err
			}
			continue
		}
		last = next
		if void[next] {
			continue
		}
		addVoid(void, next)
		if err := f.file(next, func() string { return newer(f.name, next, void) }); err != nil {
			return err
		}
	}
}

// after returns the first segment behind last, "" if there is none.
func after(dir, last string) (string, error) {
	found, err := segments(dir)
	if err != nil {
		return "", err
	}
	for _, name := range found {
		if name > last {
			return name, nil
		}
	}
	return "", nil
}

// newer returns the first segment behind last that is not void. What hinders it hinders the next look too.
func newer(dir, last string, void map[string]bool) string {
	for at := last; ; {
		next, err := after(dir, at)
		if err != nil || next == "" || !void[next] {
			return next
		}
		at = next
	}
}

// file reads one file for as long as it is the last. newer is the segment behind it, "" if there is none.
func (f *follower) file(name string, newer func() string) error {
	in, err := os.Open(name) //nolint:gosec // the user names what to read
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	l := lines{name: name, in: bufio.NewReaderSize(io.LimitReader(in, ofTheLog(in, newer())), audit.MaxRecord)}
	for next := ""; ; {
		record, err := l.next()
		switch bad := new(*BadLine); {
		case err == nil || errors.As(err, bad):
			if !f.yield(record, err) {
				return errStopped
			}
			continue
		case !errors.Is(err, io.EOF):
			return err
		}
		if next != "" {
			if l.length > 0 && l.whole < ofTheLog(in, next) && !f.yield(Record{}, l.bad(audit.ErrTorn)) {
				return errStopped
			}
			return nil
		}
		if next = newer(); next != "" {
			continue // what was written between the last look and the closing
		}
		if err := f.wait(); err != nil {
			return err
		}
		if err := notShorter(in); err != nil {
			return err
		}
	}
}

// notShorter refuses a file that lost what was read: a log only grows.
func notShorter(in *os.File) error {
	at, err := in.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if info.Size() < at {
		return fmt.Errorf("%s has become shorter while it was read: %d bytes are there, %d were", in.Name(), info.Size(), at)
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
