package query

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// BadLine is a line that holds no record. Reading goes on after it.
type BadLine struct {
	File string
	audit.LineError
	// IsGap says that records may not be read: nothing of the file is from this line on, or they are missing. Such lines are named whatever the number of others.
	IsGap bool

	// What it says of its place, if it stands in that of a record: it is one, which this version does not read.
	seq  uint64
	prev string
	leaf hash
}

func badAt(file string, line int, err error) *BadLine {
	return &BadLine{File: file, LineError: audit.LineError{Line: line, Err: err}}
}

func (b *BadLine) Error() string { return fmt.Sprintf("%s: %v", b.File, b.LineError.Error()) }

// Unwrap returns what is wrong with the line.
func (b *BadLine) Unwrap() error { return b.Err }

// Why no more of a file is read.
var (
	errHole    = errors.New("it has bytes that no record has; what stands from there on is not read")
	errStrange = fmt.Errorf("more than %d bytes up to this line are no records, or not in their place; what stands behind it is not read", segment.MaxLost)
	errEndless = fmt.Errorf("longer than %d bytes, which no record is by far; what stands from there on is not read", segment.MaxLost)
)

// feed is where lines come from: a *segment.Lines, or what reads one ahead. Its methods are those of that type.
type feed interface {
	Next() ([]byte, error)
	Number() int
	Begin() int64
	Size() int
	End() int64
	IsWhole() bool
	HasNUL() bool
}

// lines reads a stream line by line. At its end it can be asked again, for a file that grows, if it is not read ahead.
type lines struct {
	feed
	judge
	file      *segment.Lines // the feed, if it is not ahead
	ahead     *ahead         // the feed, if it is that
	passed    int            // so many lines are seen and not read
	seen      func(hash)     // is told of each whole line, if it is not too long for a record
	ended     error          // why nothing more is read
	isDamaged bool           // that nothing more can be unpacked
	seq       uint64         // of the last record
	holed     int            // bytes of lines with a NUL
	strange   int            // bytes of a segment that are no records, or records that do not stand behind the one of the number before
}

func newLines(name string, r io.Reader) *lines { return linesOf(judge{name: name}, r) }

func linesOf(j judge, r io.Reader) *lines {
	j.memory = &audit.Memory{}
	file := segment.NewLines(r, audit.MaxRecord, segment.MaxLost)
	return &lines{feed: file, file: file, judge: j, seen: func(hash) {}}
}

// linesAhead are read and judged on several processors. They must be closed before anything else is read from r.
func linesAhead(j judge, r io.Reader, judges int) *lines {
	a := readAhead(j, r, judges)
	return &lines{feed: a, ahead: a, judge: j, seen: func(hash) {}}
}

// close ends reading ahead.
func (l *lines) close() {
	if l.ahead != nil {
		l.ahead.close()
	}
}

// judged is what the line says that was returned last.
func (l *lines) judged(line []byte) judged {
	if l.ahead != nil {
		return l.ahead.line().judged
	}
	return l.line(l.Number(), line, "", hash(evidence.Leaf(line)))
}

// all returns what is left to read. behind says how many bytes stand behind so many; nil if that cannot be known.
func (l *lines) all(behind func(read int64) (int64, error)) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for {
			record, err := l.next()
			switch {
			case err == io.EOF: //nolint:errorlint // next returns it as it is; a line that is bad may wrap anything
				if l.Size() > 0 {
					yield(Record{}, l.bad(audit.ErrTorn))
				}
				return
			case l.ended != nil:
				yield(Record{}, l.rest(behind))
				return
			case !yield(record, err):
				return
			case err != nil && !errors.As(err, new(*BadLine)):
				return
			}
		}
	}
}

// rest is all that is not read, as one bad line.
func (l *lines) rest(behind func(read int64) (int64, error)) error {
	l.close()
	bad := l.bad(l.ended)
	bad.IsGap = true
	if l.isDamaged {
		return bad
	}
	bad.Torn = true
	if behind == nil || l.ended == errStrange { //nolint:errorlint // set as it is; to count the bytes of a packed file is to unpack it
		return bad
	}
	n, err := behind(l.Begin())
	if evidence.IsFault(err) { // it is packed, and damaged further on
		return bad
	}
	if err != nil {
		return err
	}
	bad.Bytes = int(n)
	return bad
}

// next returns the next record, a *BadLine, io.EOF if the end of the next line is not there, or the error of the stream. Once ended is set,
// nothing more comes.
func (l *lines) next() (Record, error) {
	if l.isSegment && l.strange > segment.MaxLost {
		l.ended = errStrange
		return Record{}, l.ended
	}
	text, err := l.Next()
	for err == nil && l.Number() <= l.passed && !l.HasNUL() {
		l.seen(hash(evidence.Leaf(text)))
		text, err = l.Next()
	}
	switch fault, isDamaged := errors.AsType[*evidence.Fault](err); {
	case l.HasNUL() && l.isHole(): // before any other error: a hole has no end
		l.ended = errHole
	case errors.Is(err, segment.ErrEndless):
		l.ended = errEndless
	case err == nil, errors.Is(err, audit.ErrTooLong):
		return l.record(text, err)
	case errors.Is(err, io.EOF):
		return Record{}, io.EOF
	case isDamaged: // it is packed
		l.ended, l.isDamaged = fmt.Errorf("%s; what stands from there on is not read", fault.Problem), true
	default:
		return Record{}, fmt.Errorf("read %s, line %d: %w", l.name, l.Number(), err)
	}
	return Record{}, l.ended
}

// isHole says whether a line with a NUL is the end of a file: of a segment it is, and of anything else if there are more such bytes than a crash
// leaves.
func (l *lines) isHole() bool {
	holed := l.holed + l.Size()
	if l.IsWhole() {
		l.holed = holed
	}
	return l.isSegment || holed > segment.MaxLost
}

// record judges a whole line. Packed files can hold any number of lines that are no records of their segment: a reader bounds what it does for these.
func (l *lines) record(line []byte, err error) (Record, error) {
	r, err := l.parse(line, err)
	seq := r.Seq
	if bad, ok := errors.AsType[*BadLine](err); ok {
		seq = bad.seq
	}
	if seq == 0 || l.seq > 0 && seq != l.seq+1 {
		l.strange += l.Size()
	}
	if err == nil || seq == l.seq+1 {
		l.seq = seq
	}
	return r, err
}

func (l *lines) parse(line []byte, err error) (Record, error) {
	if err != nil {
		return Record{}, l.bad(err)
	}
	j := l.judged(line)
	l.seen(j.leaf)
	if j.err != nil {
		bad := l.bad(j.err)
		if p, _, err := segment.PlaceOf(line); err == nil {
			bad.seq, bad.prev, bad.leaf = p.Seq, string(p.Prev), j.leaf
		}
		return Record{}, bad
	}
	return Record{Event: j.event, Raw: line, File: l.name, Line: l.Number(), leaf: j.leaf, isUnwanted: j.isUnwanted, isLent: j.isLent}, nil
}

func (l *lines) bad(err error) *BadLine {
	n := l.Size()
	if l.IsWhole() {
		n-- // its newline
	}
	return &BadLine{File: l.name, LineError: audit.LineError{Line: l.Number(), Bytes: n, Torn: errors.Is(err, audit.ErrTorn), Err: err}}
}
