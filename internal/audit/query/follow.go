package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// ErrEnd comes from Follow each time that all there is has been read, once before each wait.
var ErrEnd = errors.New("end of the log for now")

// Follow returns the records of a file or of a directory of segments, and those that are added, until ctx is done. It looks each
// interval: a copied file, a network drive and a container's mount tell of changes in no way that all systems share. A segment
// is left for the next one only after it was read to its end once more: its writer closes it before it begins another. If it goes on nevertheless, a
// *BadLine says so, and it is read on.
func Follow(ctx context.Context, name string, interval time.Duration) iter.Seq2[Record, error] {
	return FollowLast(ctx, name, interval, 0)
}

// FollowLast is Follow for the last segments of a directory, and those that come; 0 means all.
func FollowLast(ctx context.Context, name string, interval time.Duration, segments int) iter.Seq2[Record, error] {
	return following(ctx, func(t teller) error {
		return (&follower{teller: t, name: name, interval: interval, segments: segments}).run()
	})
}

var errStopped = errors.New("the reader has stopped")

// teller returns what is found to the reader, until it has enough or ctx is done.
type teller struct {
	ctx   context.Context // of one reading
	yield func(Record, error) bool
}

// following returns what run tells, and its error behind that.
func following(ctx context.Context, run func(teller) error) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := run(teller{ctx, yield}); err != nil && !errors.Is(err, errStopped) {
			yield(Record{}, err)
		}
	}
}

// tell returns errStopped if the reader has enough.
func (t teller) tell(r Record, err error) error {
	if !t.yield(r, err) {
		return errStopped
	}
	return nil
}

// wait says that all was read for now, and waits.
func (t teller) wait(d time.Duration) error {
	if err := t.tell(Record{}, ErrEnd); err != nil || !periodic.Sleep(t.ctx, d) {
		return errStopped
	}
	return nil
}

type follower struct {
	teller
	name     string
	interval time.Duration
	segments int     // so many of those that are there are read, from the end; 0 means all
	heads    []*head // of segments, the one that grew last behind the others
	parts    []part  // of the directory, when it was listed last
	next     time.Time
	// isDirectory says that all of a log is read, from its first record that is there on.
	isDirectory bool
}

func (f *follower) run() error {
	info, err := os.Stat(f.name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		h, err := newHead(part{Part: evidence.Part{Path: f.name, Bytes: -1}}, chain{})
		if err != nil {
			return err
		}
		defer h.close()
		for err == nil {
			if err = f.read(h); err == nil {
				err = errors.Join(f.wait(f.interval), notShorter(f.name, h.place()))
			}
		}
		return err
	}
	f.isDirectory = true
	there, err := segments(f.name)
	if err != nil {
		return err
	}
	read := map[string]bool{} // names of segments, as their writer gave them
	if n := len(there) - f.segments; f.segments > 0 && n > 0 {
		for _, p := range there[:n] {
			read[given(p)] = true
		}
	}
	defer func() {
		for _, h := range f.heads {
			h.close()
		}
	}()
	for {
		if err := f.look(); err != nil {
			return err
		}
		next, err := f.after(read)
		switch {
		case err != nil:
			return err
		case len(next) == 0:
			if err := f.wait(f.interval); err != nil {
				return err
			}
			for _, h := range f.heads {
				if h.in == nil {
					continue
				}
				err := notShorter(h.Path, h.place())
				switch {
				case errors.Is(err, fs.ErrNotExist): // it was packed, or taken away; what is missing is told with the next record
					h.close()
					h.size = math.MaxInt64
					if err := f.give(h, Record{}, badAt(h.Path, h.lines.Number(), errGone)); err != nil {
						return err
					}
				case err != nil:
					return err
				}
			}
			continue
		}
		for _, p := range next {
			read[given(p)] = true
			if err := f.begin(p); err != nil {
				return err
			}
		}
	}
}

// given is the name that its writer gave a segment: it may be packed while it is followed.
func given(p part) string {
	name, _, _ := segment.ParseCopy(filepath.Base(p.Path))
	return name
}

// head is a file as far as it was read. One that was left for another is closed, and opened again if it grows: of two segments that both go on
// from one place, the file that the log's own process writes to is the one that grows.
type head struct {
	part
	in      io.Closer // nil while it is left
	limited *io.LimitedReader
	lines   *lines
	chain   chain
	size    int64 // when it was left
}

func newHead(p part, c chain) (*head, error) {
	in, _, err := p.open(nil)
	if err != nil {
		return nil, err
	}
	h := &head{part: p, in: in, chain: c}
	h.reads(in)
	return h, nil
}

func (h *head) reads(in io.Reader) {
	h.limited = &io.LimitedReader{R: in, N: math.MaxInt64}
	if h.Bytes >= 0 {
		h.limited.N = h.Bytes
	}
	p := h.part
	p.Bytes = -1
	h.lines = p.lines(h.limited, 1, Wanted{})
}

// place is how many bytes were read.
func (h *head) place() int64 { return h.lines.End() }

func (h *head) close() {
	if h.in != nil {
		_ = h.in.Close() // only read
		h.in = nil
	}
}

// again opens a file that has grown, at the line whose end was not there. What another segment says of its end counts no more.
func (h *head) again() error {
	in, _, err := h.open(nil)
	if err != nil {
		return err
	}
	before := h.lines
	if _, err := io.CopyN(io.Discard, in, before.Begin()); err != nil {
		return errors.Join(err, in.Close())
	}
	h.in, h.Bytes = in, -1
	h.reads(in)
	h.lines.file.GoOn(before.file)
	h.lines.seq, h.lines.strange = before.seq, before.strange
	return nil
}

// look reads what there is to read.
func (f *follower) look() error {
	for _, h := range slices.Clone(f.heads) {
		if h.in != nil {
			if err := f.read(h); err != nil {
				return err
			}
			continue
		}
		info, err := os.Stat(h.Path)
		if err != nil || info.Size() <= h.size || h.lines.ended != nil || strings.HasSuffix(h.Path, segment.Packed) {
			continue // it may have been removed
		}
		if err := h.again(); err != nil { // something else has its name now
			h.size = math.MaxInt64
			if err := f.give(h, Record{}, badAt(h.Path, h.lines.Number(), err)); err != nil {
				return err
			}
			continue
		}
		if err := f.give(h, Record{}, badAt(h.Path, h.lines.Number(), errGoesOn)); err != nil {
			return err
		}
		if err := f.read(h); err != nil {
			return err
		}
		f.heads = append(slices.DeleteFunc(f.heads, func(o *head) bool { return o == h }), h)
	}
	return nil
}

var errGone = errors.New("the segment is not there any more, and was not read to its end")

var errGoesOn = errors.New("the segment goes on behind this line, after another one was begun: one of the two is not the log's")

// begin goes over to a segment. Those that are open were written to between the last look and their closing; it follows on one of them, or else on the last.
func (f *follower) begin(next part) error {
	var before chain
	for _, h := range f.heads {
		if h.in == nil {
			continue
		}
		if err := f.read(h); err != nil {
			return err
		}
		if err := f.leave(h); err != nil {
			return err
		}
	}
	for i, h := range f.heads {
		if i == len(f.heads)-1 && before.seq == 0 || h.chain.seq+1 == next.First {
			before = h.chain
		}
	}
	h, err := newHead(next, before)
	switch {
	case evidence.IsFault(err) || errors.Is(err, fs.ErrPermission): // no reason to end the reading of others
		return f.tell(Record{}, badAt(next.Path, 1, err))
	case errors.Is(err, fs.ErrNotExist): // it was packed or removed since
		return nil
	case err != nil:
		return err
	}
	for _, other := range f.heads {
		if other.First <= next.First && next.First-other.First < uint64(max(0, other.lines.Number())) && other.chain.seq >= next.First {
			text := fmt.Sprintf("begins with record %d, which was read in %s: one of the two is not the log's", next.First, filepath.Base(other.Path))
			if err := f.tell(Record{}, badAt(next.Path, 1, errors.New(text))); err != nil {
				return err
			}
			break
		}
	}
	f.heads = append(f.heads, h)
	return nil
}

// leave closes a file. What stands at its end without a newline is torn, unless the segments say that it is none of the log.
func (f *follower) leave(h *head) error {
	limit := f.limit(h.Path)
	h.close()
	h.size = h.place()
	if info, err := os.Stat(h.Path); err == nil {
		h.size = max(h.size, info.Size())
	}
	l := h.lines
	defer l.file.Release()
	if l.ended == nil && l.Size() > 0 && l.Begin() < limit {
		return f.give(h, Record{}, l.bad(audit.ErrTorn))
	}
	return nil
}

// read reads a file to its end.
func (f *follower) read(h *head) error {
	for h.lines.ended == nil {
		record, err := h.lines.next()
		switch {
		case err == nil || errors.As(err, new(*BadLine)):
			if err := f.give(h, record, err); err != nil {
				return err
			}
		case h.lines.ended == nil && !errors.Is(err, io.EOF):
			return err
		case h.lines.ended != nil: // whatever comes behind it
			bad := h.lines.bad(h.lines.ended)
			bad.IsGap = true
			return f.give(h, Record{}, bad)
		default:
			return nil
		}
	}
	return nil
}

// segments are the parts of the log in a directory, which may have none yet.
func segments(dir string) ([]part, error) {
	l := &Log{Names: []string{dir}}
	if err := l.list(evidence.List); err != nil {
		return nil, err
	}
	return l.parts, nil
}

// after lists the segments that were not read yet, and do not lie before one that was, or follow on one. A directory may be made to hold any number of files: it is listed for
// at most a tenth of the time.
func (f *follower) after(read map[string]bool) (next []part, err error) {
	begun := time.Now()
	if begun.Before(f.next) {
		return nil, nil
	}
	defer func() { f.next = time.Now().Add(9 * time.Since(begun)) }()
	entries, _, err := segment.List(f.name)
	if err != nil {
		return nil, err
	}
	if len(read) > 0 && !slices.ContainsFunc(entries, func(e segment.Entry) bool { return !read[e.Given] }) {
		return nil, nil // the usual answer, for which no file is opened
	}
	if f.parts, err = segments(f.name); err != nil {
		return nil, err
	}
	follows, last := map[uint64]bool{}, uint64(0)
	for _, h := range f.heads {
		follows[h.chain.seq+1] = true
	}
	for _, p := range f.parts {
		if read[given(p)] {
			last = p.First
		}
	}
	for _, p := range f.parts {
		if !read[given(p)] && (p.First >= last || follows[p.First]) {
			next = append(next, p)
		}
	}
	return next, nil
}

// limit is how many bytes of a segment are of the log, as the segments say that were listed last.
func (f *follower) limit(name string) int64 {
	for _, p := range f.parts {
		if p.Path == name && p.Bytes >= 0 {
			return p.Bytes
		}
	}
	return math.MaxInt64
}

func (f *follower) give(h *head, r Record, err error) error {
	before := h.chain.seq
	if h.chain.next(&r, err); f.isDirectory {
		r.Missing = h.chain.missing(before, r, err)
	}
	return f.tell(r, err)
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
