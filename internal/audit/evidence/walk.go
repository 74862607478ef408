package evidence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// Range is a run of records by their numbers, both ends included.
type Range struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// walk goes through segments in order and holds one line in memory at a time. It checks what lines say of each other: numbers without gaps,
// the hash of each record in the one after it, and that each segment declares what stands behind the last record of the one before.
type walk struct {
	// isPartial says that segments may be missing: a gap is noted and not a fault.
	isPartial bool
	// isWriter says that the log is going to be continued. It then ends where the writer of segments ends it, which declares what stands
	// behind that. Records up to covered were durable.
	isWriter bool
	covered  uint64
	// isOwn says that the writer of the log asks: a segment that was put beside those of the log, of which signed was signed, is left out.
	isOwn  bool
	signed Head
	// visit is called for each record. An error of it ends the walk.
	visit func(*Record) error
	// read is told of bytes as they are read; it may be nil.
	read func(int64)

	order    []opening
	limit    int64  // of the last segment, for a writer: how many bytes are of the log
	next     uint64 // number that the next record must have; 0 before the first
	last     [segment.PrevLength]byte
	isLinked bool      // last is the hash of the record before
	isClosed bool      // that record closed its segment
	torn     int64     // bytes behind the last record of all
	hashed   int64     // bytes behind last records that were read for segments which are not signed
	unnamed  []opening // segments without records that no segment of the log names
	ignored  int64     // bytes behind last records of segments, and in segments that hold no record, the last one's excepted
	// unheld says where no hash holds what stands beside the records: fewer bytes than were hashed, since the machine failed later or they were
	// changed, more than any crash leaves, which no start reads, or bytes of which nothing but their number was declared.
	unheld []string
	// gone is told what stood beside the records, by the word of one of them, and does not any more: the machine failed, an administrator moved
	// it away, or it was removed to hide it. It may be nil.
	gone      func(seq uint64, what string)
	missing   []Range
	overruled []Overruled
	void      []string // segments that the log declares void
	parts     []Part   // that were read, as far as they are of the log
	in        *segment.Lines
}

// bufferSize trades memory for fewer reads.
const bufferSize = 256 << 10

// errDone ends a walk early.
var errDone = errors.New("done")

// sort finds the segments that hold records, and returns the number that the first of them begins with, 0 if there is none.
func (w *walk) sort(ctx context.Context, segments []segment.Entry) (first uint64, err error) {
	all, err := lookAll(segments, w.isWriter, nil)
	if err == nil && w.isOwn {
		err = w.chain(ctx, all)
	}
	if err != nil {
		return 0, err
	}
	w.order, w.ignored, w.unnamed = inOrder(all)
	if !w.isWriter {
		err = w.lookVoid(all)
	}
	if err != nil || len(w.order) == 0 {
		return 0, err
	}
	for i, o := range w.order[1:] {
		if before := w.order[i]; before.First == o.First {
			if before.isPacked && !o.isPacked || before.Misfit != nil && o.Misfit == nil { // the proxy packs nothing, and its openings fit
				o, before = before, o
			}
			problem := fmt.Sprintf("begins with the same record as %s", filepath.Base(before.Path))
			if o.Misfit != nil {
				problem += fmt.Sprintf(", and its first record does not open a segment of this log: %v", o.Misfit)
			}
			return 0, &Fault{o.Path, 1, o.First, problem}
		}
	}
	return w.order[0].First, nil
}

// chain leaves out what the writer of the log does not go on from, and finds where it goes on in the last segment: it declares what stands behind that. Where that
// is before a record under a checkpoint, the log was changed.
func (w *walk) chain(ctx context.Context, all []opening) error {
	var links []segment.Link
	var whole []*opening
	for i := range all {
		if o := &all[i]; o.IsWhole {
			whole, links = append(whole, o), append(links, o.Link)
		}
	}
	if len(whole) == 0 {
		return nil
	}
	dir := filepath.Dir(whole[0].Path)
	chained, err := segment.Chain(links, segment.Signed{Size: w.signed.Size, Fits: Fits(dir, w.signed)}, func(i int) (io.ReadCloser, error) {
		f, _, err := openRegular(whole[i].Path)
		return segment.UntilDone(ctx, f), err
	})
	if err != nil {
		return err
	}
	for i, o := range whole {
		o.Counts = chained.Keep[i]
	}
	if chained.Last < 0 {
		return nil
	}
	last := whole[chained.Last]
	if w.limit = chained.Bytes; w.isWriter && chained.Seq < w.covered && w.limit < last.Size {
		return &Fault{last.Path, chained.Line, chained.Seq + 1, fmt.Sprintf("not the next record, and the last checkpoint covers %d of them", w.covered)}
	}
	return nil
}

// Fits returns what tells the segments that a checkpoint was signed of from others with as many records: see segment.Signed.
func Fits(dir string, signed Head) func(names []string) (bool, error) {
	return func(names []string) (bool, error) {
		var order []opening
		for _, name := range names {
			s, _ := segment.EntryOf(filepath.Join(dir, name))
			o, err := look(s, true)
			if err != nil {
				return false, err
			}
			order = append(order, o)
		}
		tree := leafRange{}
		if order[0].First > 1 {
			var err error
			if tree, err = readStart(filepath.Join(dir, StartFile)); err != nil || tree.end+1 < order[0].First || tree.end > signed.Size {
				return false, ignoreFault(err)
			}
		}
		seq := order[0].First - 1
		for i, o := range order {
			length := o.Size
			if i+1 < len(order) {
				length = order[i+1].declared.PreviousBytes
			}
			err := addLeaves(&tree, &seq, o.Path, length, signed.Size)
			if err != nil {
				return false, err
			}
		}
		return tree.end == signed.Size && tree.root() == signed.Root, nil
	}
}

// addLeaves adds the lines of a segment to a tree, up to a size; seq is the number of the line before.
func addLeaves(tree *leafRange, seq *uint64, path string, length int64, size uint64) error {
	f, _, err := openRegular(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	err = segment.Scan(io.LimitReader(f, length), func(line []byte, _ int64) bool {
		if line == nil || tree.end >= size {
			return false // if it is no record, the root will not fit
		}
		if *seq++; *seq > tree.end {
			tree.append(Leaf(line))
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func ignoreFault(err error) error {
	if IsFault(err) {
		return nil
	}
	return err
}

// run walks what sort found.
func (w *walk) run(ctx context.Context) error {
	w.in = segment.NewLines(nil, bufferSize, bufferSize-1)
	for i, s := range w.order {
		err := w.enter(s)
		if err != nil {
			return err
		}
		var next *opening
		if i+1 < len(w.order) {
			next = &w.order[i+1]
		}
		if err := w.segment(ctx, s, next); err != nil {
			return err
		}
	}
	return nil
}

// enter compares the first number of a segment with the last one of the segment before.
func (w *walk) enter(s opening) error {
	if w.next == 0 {
		w.next = s.First
		if s.First == 1 {
			w.link(tlog.Hash{})
		}
	}
	if s.First == w.next {
		return nil
	}
	if !w.isPartial || s.First < w.next {
		return &Fault{s.Path, 0, w.next, fmt.Sprintf("begins with record %d, but record %d is due", s.First, w.next)}
	}
	w.missing = append(w.missing, Range{w.next, s.First - 1})
	w.next, w.isLinked = s.First, false
	return nil
}

func (w *walk) link(h tlog.Hash) {
	base64.StdEncoding.Encode(w.last[:], h[:])
	w.isLinked = true
}

// segment walks one segment, up to the record before the first one of the next.
func (w *walk) segment(ctx context.Context, s opening, next *opening) error {
	f, err := OpenSegment(s.Path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	if name := s.declared.Segment; name != "" && name != s.Given {
		return &Fault{s.Path, 1, s.First, fmt.Sprintf("its first record says that it is %s", name)}
	}
	w.in.Reset(f)
	w.torn = 0
	r := Record{File: s.Path}
	var length int64
	defer func() { w.parts = append(w.parts, Part{Path: s.Path, First: s.First, Bytes: length}) }()
	for {
		if r.Line%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if next != nil && w.next == next.First {
			return w.leave(f, s, length, next)
		}
		if w.isWriter && next == nil && length == w.limit {
			w.torn = s.Size - length
			return nil
		}
		raw, err := w.in.Next()
		r.Line, length = w.in.Number(), w.in.End()
		w.count(int64(w.in.Size()))
		switch {
		case next == nil && !w.isWriter && (w.in.HasNUL() || errors.Is(err, io.EOF)):
			// A line that is being written, or was cut short; or a hole that the file system left when the machine failed. A record that
			// was there is missed by a checkpoint.
			length = w.in.Begin()
			w.count(-int64(w.in.Size()))
			w.torn, err = w.skip(f, length)
			return err
		case errors.Is(err, io.EOF) && w.isPartial:
			length = w.in.Begin()
			return nil // the gap will be noted
		case errors.Is(err, io.EOF) && next == nil:
			return fmt.Errorf("%s has become shorter while it was read", s.Path)
		case errors.Is(err, io.EOF):
			return &Fault{s.Path, r.Line, w.next, fmt.Sprintf("the segment ends, but records up to %d are due before the next one", next.First-1)}
		case errors.Is(err, audit.ErrTooLong):
			return &Fault{s.Path, r.Line, w.next, fmt.Sprintf("longer than %d bytes", audit.MaxRecord)}
		case err != nil:
			return fmt.Errorf("read %s, line %d: %w", s.Path, r.Line, err)
		}
		if err := w.record(&r, raw); err != nil {
			return err
		}
	}
}

func (w *walk) count(n int64) {
	if w.read != nil {
		w.read(n)
	}
}

func (w *walk) isGone(seq uint64, what string) {
	if w.gone != nil {
		w.gone(seq, what)
	}
}

// leave checks the end of a segment against the declaration in the next one. length is that of the records up to there.
func (w *walk) leave(f *Stored, s opening, length int64, next *opening) error {
	declared, tornBytes := next.declared, int64(next.declared.TornBytes)
	isHashed := declared.PreviousTornHash != "" && tornBytes <= segment.MaxTorn
	size, isTooMuch := tornBytes, false // isTooMuch: no start reads it
	if isHashed && next.First > w.signed.Size {
		if !s.isPacked {
			size = min(size, max(0, s.Size-length))
		}
		w.hashed += size
		isTooMuch = w.hashed > segment.MaxUnsignedTorn
		isHashed = !isTooMuch
	}
	sum, torn := sha256.New(), io.LimitReader(w.in.Rest(), tornBytes)
	if isHashed {
		torn = io.TeeReader(torn, sum)
	}
	if tornBytes > 0 && !isTooMuch {
		whole, err := CountRecords(torn, next.First-1, string(w.last[:]))
		if err == nil && isHashed {
			_, err = io.Copy(io.Discard, torn)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", s.Path, err)
		}
		if whole > 0 {
			w.overruled = append(w.overruled, Overruled{File: s.Path, First: next.First, Last: next.First + whole - 1, By: next.Path})
		}
	}
	behind, err := w.skip(f, length)
	if err != nil {
		return fmt.Errorf("read %s: %w", s.Path, err)
	}
	if err := next.follows(s, length, behind); err != nil {
		return err
	}
	switch {
	case behind == 0 && tornBytes > 0:
		w.isGone(next.First, fmt.Sprintf("%d bytes stood behind the last record of %s, and none do now", tornBytes, filepath.Base(s.Path)))
	case behind == 0:
	case isTooMuch:
		if w.hashed-size > segment.MaxUnsignedTorn { // the first was named
			break
		}
		w.unheld = append(w.unheld, fmt.Sprintf("%s is not signed, and a start leaves it out, with the segments that continue it: more bytes stand behind the records of the segments before it than any start leaves, and they are not read", next.Path))
	case !isHashed:
		w.noteUnhashed(s.Path, behind)
	case behind < tornBytes:
		w.unheld = append(w.unheld, fmt.Sprintf("%d bytes stand behind the last record of %s, and %d did when %s was begun: what they are cannot be told from their hash",
			behind, filepath.Base(s.Path), tornBytes, filepath.Base(next.Path)))
	case behind == tornBytes && hex.EncodeToString(sum.Sum(nil)) != declared.PreviousTornHash:
		return &Fault{s.Path, 0, next.First - 1, fmt.Sprintf("the %d bytes behind its last record are not those that stood there when %s was begun", behind, filepath.Base(next.Path))}
	}
	w.ignored += behind
	return nil
}

// noteUnhashed notes bytes of a segment whose number the log declares, and whose hash it does not: they can be exchanged without being noticed. A crash leaves no
// more than MaxTorn, and a writer hashes these unless it cannot read them.
func (w *walk) noteUnhashed(path string, size int64) {
	if size == 0 {
		return
	}
	why := "the log was begun without one, by a proxy that could not read them, or by an attacker"
	if size > segment.MaxTorn {
		why = "they are more than a crash leaves, so they were added"
	}
	w.unheld = append(w.unheld, fmt.Sprintf("no hash holds %d bytes in %s that are no records: %s, and they may have been exchanged since", size, filepath.Base(path), why))
}

// skip returns how many bytes of a segment stand behind those that were read.
func (w *walk) skip(f *Stored, read int64) (int64, error) {
	behind, err := f.Behind(read)
	w.count(behind)
	return behind, err
}

func (w *walk) record(r *Record, raw []byte) error {
	if err := parseRecord(raw, r); err != nil {
		return &Fault{r.File, r.Line, w.next, err.Error()}
	}
	if r.Seq != w.next {
		return &Fault{r.File, r.Line, r.Seq, fmt.Sprintf("record %d is due", w.next)}
	}
	if (r.Line == 1) != (r.stage == string(audit.StageLogOpen)) {
		return &Fault{r.File, r.Line, r.Seq, "a LogOpen record must be the first of a segment, and no other record may be"}
	}
	if w.isClosed && r.Line > 1 {
		return &Fault{r.File, r.Line, r.Seq, "it comes after the LogClose record of its segment, where no writer writes one"}
	}
	if w.isLinked && !bytes.Equal(r.prev, w.last[:]) {
		problem := fmt.Sprintf("its hash of the record before does not fit: record %d was changed, or this hash", r.Seq-1)
		if r.Seq == 1 {
			problem = "the first record of a log has no record before it, and must say so"
		}
		return &Fault{r.File, r.Line, r.Seq, problem}
	}
	w.next++
	w.link(r.Leaf)
	w.isClosed = r.stage == string(audit.StageLogClose)
	return w.visit(r)
}
