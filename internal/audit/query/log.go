package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// kinds of logs.
const (
	kindDirectory = iota
	kindFile      // segments that are named by themselves
	kindStream    // anything else, of which no segment and no checkpoint is known
)

// Log is one log of a Source, and what is known of it.
type Log struct {
	Names []string // as it was named
	// Unread is what lies in its directory and is not read.
	Unread []segment.Stray
	// Report is what a verification found, nil if there was none.
	Report *evidence.Report
	// Loose counts the records that do not follow on the one before them; First names the first.
	Loose int
	First string

	kind  int
	parts []part
	sum   evidence.Sum
	isCut bool   // only its last segments are read
	isAll bool   // everything of it was read that is
	last  uint64 // number of the last record, if it was
	// isUntold says that reading ended with an error after the caller had enough, so that it was not told.
	isUntold bool

	isAsked bool // a verification was wanted

	wanted Wanted
	passed map[string]int // by the path of a part, how many of its lines are not read: they were returned before, or are not wanted
}

// isEmpty says that nothing in the directory is read, and why.
func (l *Log) isEmpty() error {
	for _, s := range l.Unread {
		if _, _, ok := segment.ParseCopy(filepath.Base(s.Path)); ok {
			return fmt.Errorf("%s: %s", s.Path, s.Why)
		}
	}
	if segments, _, err := segment.List(l.Names[0]); err == nil && len(segments) > 0 {
		return fmt.Errorf("%s %w with a record", l.Names[0], errNoSegments)
	}
	return fmt.Errorf("%s %w: no file named audit-<20 digits>-<id>.jsonl", l.Names[0], errNoSegments)
}

var errNoSegments = errors.New("holds no segments")

// list finds the segments of a directory. What has the name of one and is no file is among them: reading it says so.
func (l *Log) list(list func(dir string) ([]evidence.Part, []segment.Stray, error)) error {
	parts, unread, err := list(l.Names[0])
	if err != nil {
		return err
	}
	l.Unread, l.parts = nil, nil
	for _, s := range unread {
		if _, first, ok := segment.ParseCopy(filepath.Base(s.Path)); ok && s.Kind == segment.StrayClaim {
			parts = append(parts, evidence.Part{Path: s.Path, First: first, Bytes: -1})
			continue
		}
		l.Unread = append(l.Unread, s)
	}
	segment.SortByNumber(parts, func(p evidence.Part) (uint64, string) { return p.First, filepath.Base(p.Path) })
	for i, p := range parts {
		l.parts = append(l.parts, part{p, i == len(parts)-1})
	}
	return nil
}

// of has a verification be one of this log.
func (l *Log) of(o evidence.VerifyOptions) evidence.VerifyOptions {
	if l.kind == kindDirectory {
		o.Dir = l.Names[0]
	} else {
		o.Files = l.Names
	}
	return o
}

func (l *Log) prunedUntil(ctx context.Context) (uint64, error) {
	r := l.Report
	if r == nil {
		if l.kind == kindStream {
			return 0, nil
		}
		unverified, err := evidence.Verify(ctx, l.of(evidence.VerifyOptions{}))
		if err != nil {
			return 0, err
		}
		r = &unverified
	}
	if r.Fault != nil {
		return 0, nil //nolint:nilerr // nothing behind a fault is believed, a pruning included
	}
	return r.PrunedUntil, nil
}

// verify verifies the log, and has what the verification covers read. Behind a fault, nothing is covered.
func (l *Log) verify(ctx context.Context, o evidence.VerifyOptions) error {
	if l.isAsked = true; l.kind == kindStream {
		return nil
	}
	r, err := evidence.Verify(ctx, l.of(o))
	if err != nil {
		return err
	}
	l.Report = &r
	if r.Fault != nil {
		if l.kind == kindDirectory {
			return l.list(evidence.ListAll)
		}
		return nil
	}
	l.parts = nil
	for i, p := range r.Parts {
		l.parts = append(l.parts, part{p, false})
		if i == len(r.Parts)-1 {
			l.parts[i].Torn = r.Torn
		}
	}
	return nil
}

// Standing says how a log that was read stands.
type Standing struct {
	// Verified is the last record of those that were verified and are those that were read, 0 if there is none. The other records were not verified.
	Verified uint64
	// ByItself says that only checkpoints that lay beside the log cover them: what was cut off at its end does not show.
	ByItself bool
	// Changed says that the log was changed: by its verification, or since.
	Changed bool
	// Why says why not all is verified, for people.
	Why string
}

// NotTheSame is why nothing is proven of a log that was changed between its verification and its reading.
const NotTheSame = "what was read is not what was verified: the log was changed in between, or not read to its end"

// Standing says what is proven of the records that were read, once all were.
func (l *Log) Standing() Standing {
	s := l.standing()
	if r := l.Report; r != nil && r.HadKeys { // all of it: one reason must not hide another
		why := r.Incomplete
		if s.Why != "" && !slices.ContainsFunc(why, func(text string) bool { return strings.HasPrefix(text, s.Why) }) {
			why = slices.Concat([]string{s.Why}, why)
		}
		s.Why = strings.Join(why, "; ")
	}
	return s
}

func (l *Log) standing() Standing {
	r := l.Report
	switch {
	case r == nil && !l.isAsked:
		return Standing{Why: "no keys given"}
	case r == nil:
		return Standing{Why: "it is no segment of a log, and no checkpoint is known of it"}
	case r.Fault != nil:
		return Standing{Changed: true, Why: "the log was changed: " + r.Fault.Error()}
	case !r.HadKeys:
		return Standing{Why: "no keys given"}
	case !l.isAll:
		return Standing{Changed: l.isUntold, Why: NotTheSame}
	case l.sum != r.Read:
		return Standing{Changed: true, Why: NotTheSame}
	case r.Uncovered != "":
		return Standing{Why: r.Uncovered}
	}
	return Standing{Verified: max(r.OwnCovered, r.OutsideCovered), ByItself: r.OutsideCovered < r.OwnCovered}
}

// Reported is the log of a report of which nothing is shown but what the report itself has read.
func Reported(r evidence.Report) *Log {
	return &Log{Report: &r, kind: kindDirectory, sum: r.Read, isAll: true}
}

// read reads the log to its end, whether or not yield has enough.
func (l *Log) read(ctx context.Context, stdin io.Reader, yield func(Record, error) bool) {
	var c chain
	l.sum, l.isAll, l.isUntold, l.Loose, l.First = evidence.Sum{}, false, false, 0, ""
	goesOn := true
	tell := func(r Record, err error) bool {
		before := c.seq
		if c.next(&r, err); l.kind == kindDirectory {
			r.Missing = c.missing(before, r, err)
		}
		if r.Loose != "" {
			if l.Loose++; l.Loose == 1 {
				l.First = fmt.Sprintf("%s, line %d (record %d): %s", r.File, r.Line, r.Seq, r.Loose)
			}
		}
		l.isUntold = !goesOn && err != nil
		if r.isUnwanted && r.Missing == 0 {
			return ctx.Err() == nil
		}
		if r.isUnwanted { // it is told for what is missing before it
			r = r.Whole()
		}
		goesOn = goesOn && yield(r, err)
		return goesOn || l.Report != nil && ctx.Err() == nil
	}
	for _, p := range l.parts {
		if !l.file(p, stdin, tell, &c) {
			return
		}
	}
	l.isAll, l.last = ctx.Err() == nil, c.seq
}

// cut leaves all but the last segments of a directory unread, unless it was verified.
func (l *Log) cut(segments int) {
	if n := len(l.parts) - segments; l.kind == kindDirectory && l.Report == nil && n > 0 {
		l.parts, l.isCut = l.parts[n:], true
	}
}

// cutLines leaves all but the last lines of the last segment of a directory unread, unless it was verified.
func (l *Log) cutLines(lines int) {
	if l.kind != kindDirectory || l.Report != nil || len(l.parts) == 0 {
		return
	}
	l.cut(1)
	if n := l.parts[0].count() - lines; n > 0 {
		l.passed, l.isCut = map[string]int{l.parts[0].Path: n}, true
	}
}

// count is how many lines a part has, as far as it can be read. Those of a packed one are not counted: few bytes of it can be any number of lines, of which a reader
// reads no more than are records in their place.
func (p part) count() int {
	f, _, err := p.open(nil)
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // only read
	if s, ok := f.(*evidence.Stored); ok {
		if _, isPlain := s.Size(); !isPlain {
			return 0
		}
	}
	l := p.lines(f, 1, Wanted{})
	for err == nil && !l.HasNUL() {
		_, err = l.Next()
	}
	return l.Number()
}

// Silent are the segments that are not read, and that hold records by their names which nothing that was read holds: before the first record, or behind the last one; those
// whose records another segment declares void; and what has nearly the name of a segment, or holds a record under another one. What is missing between two records is said with the second one.
func (l *Log) Silent() (silent []segment.Stray) {
	if r := l.Report; r != nil && r.Fault != nil || len(l.parts) == 0 { // it was changed, which is said
		return nil
	}
	for _, s := range l.Unread {
		_, first, _ := segment.ParseCopy(filepath.Base(s.Path))
		isAhead, isNext := !l.isCut && first < l.parts[0].First, l.isAll && segment.IsDue(first, l.last)
		if s.Kind == segment.StrayClaim || s.Kind == segment.StrayHolding || s.Kind == segment.StrayMute && (isAhead || isNext) {
			silent = append(silent, s)
		}
	}
	return silent
}

// open opens a part. behind says how many bytes of a segment stand behind so many; it is nil for anything else.
func (p part) open(stdin io.Reader) (in io.ReadCloser, behind func(int64) (int64, error), err error) {
	if p.Path == "-" {
		return io.NopCloser(stdin), nil, nil
	}
	if p.First > 0 {
		s, err := evidence.OpenSegment(p.Path)
		if err != nil {
			return nil, nil, err
		}
		return s, s.Behind, nil
	}
	f, err := os.Open(p.Path)
	return f, nil, err
}

// lines are those of a part that is open, read with so many judges.
func (p part) lines(in io.Reader, judges int, wanted Wanted) *lines {
	if p.Bytes >= 0 {
		in = io.LimitReader(in, p.Bytes)
	}
	j := judge{name: p.Path, isSegment: p.First > 0, wanted: wanted}
	if judges > 1 {
		return linesAhead(j, in, judges)
	}
	return linesOf(j, in)
}

// file reads one file, and says whether to go on with the next. c is of the records that were told.
func (l *Log) file(p part, stdin io.Reader, tell func(Record, error) bool, c *chain) bool {
	failed := func(line int, err error) (goesOn bool) {
		if fault, ok := errors.AsType[*evidence.Fault](err); ok {
			return tell(Record{}, badAt(p.Path, line, errors.New(fault.Problem)))
		}
		tell(Record{}, err)
		return false
	}
	f, atEnd, err := p.open(stdin)
	if err != nil {
		return failed(1, err)
	}
	defer f.Close() //nolint:errcheck // only read
	in := p.lines(f, l.judges(p), l.wanted)
	defer in.close()
	in.passed = l.passed[p.Path]
	if l.Report != nil {
		in.seen = func(leaf hash) { l.sum.Add(leaf) }
	}
	if !each(in.all(atEnd), tell) {
		return false
	}
	in.close()
	if p.Bytes < 0 || in.ended != nil {
		return true
	}
	overruled, err := l.overruled(p, f, c)
	if err != nil {
		return failed(in.Number(), err)
	}
	if overruled != "" {
		bad := badAt(p.Path, in.Number()+1, errors.New(overruled))
		bad.IsGap = true
		return tell(Record{}, bad)
	}
	behind := p.Torn // of the last segment of a log that was verified
	if l.Report == nil {
		if behind, err = atEnd(p.Bytes); err != nil { // a fault: it is packed, and damaged behind its last record
			return failed(in.Number(), err)
		}
		if behind <= p.Torn {
			behind = 0
		}
	}
	if behind > 0 {
		bad := badAt(p.Path, in.Number(), errBehind)
		bad.Bytes, bad.Torn, bad.IsGap = int(behind), true, true
		return tell(Record{}, bad)
	}
	return true
}

// judges is how many read a part at the same time. Only segments are read ahead: a stream may be a pipe whose records are wanted as they come. Nor is a log that is
// followed, of which most lines were judged before.
func (l *Log) judges(p part) int {
	if p.First == 0 || l.passed != nil {
		return 1
	}
	return runtime.GOMAXPROCS(0)
}

// overruled says which whole records behind the end of a part the next segment declares torn, unless a verification shows that the log itself says so. Without a
// verification they are counted here: behind is what stands there, c is of the records before.
func (l *Log) overruled(p part, behind io.Reader, c *chain) (text string, err error) {
	if r := l.Report; r != nil && r.Fault == nil {
		for _, o := range r.Overruled {
			if o.File == p.Path && o.Unsigned {
				return o.String(), nil
			}
		}
		return "", nil
	}
	if p.Torn <= 0 || !c.hasPrev {
		return "", nil
	}
	n, err := evidence.CountRecords(io.LimitReader(behind, p.Torn), c.seq, c.leaf.String())
	if err != nil && !evidence.IsFault(err) { // one that is packed and damaged is told when it is asked how much stands there
		return "", err
	}
	if n == 0 {
		return "", nil
	}
	return evidence.Overruled{File: p.Path, First: c.seq + 1, Last: c.seq + n, By: p.By, Unsigned: true}.String(), nil
}

// errBehind is what stands behind the last record of a segment.
var errBehind = errors.New("what stands behind the last record is none, and is not read")

// each passes on what is read. Lines that are no records end nothing; any other error does.
func each(records func(func(Record, error) bool), tell func(Record, error) bool) (goesOn bool) {
	goesOn = true
	records(func(r Record, err error) bool {
		goesOn = tell(r, err) && (err == nil || errors.As(err, new(*BadLine)))
		return goesOn
	})
	return goesOn
}

// chain remembers the record before.
type chain struct {
	seq     uint64
	session string
	leaf    hash
	hasPrev bool
}

// missing is how many records are missing before one, by its number and that of the record before; 0 if that cannot be known.
func (c *chain) missing(before uint64, r Record, err error) uint64 {
	if err != nil || before == 0 || !c.hasPrev || r.Seq <= before {
		return 0
	}
	return r.Seq - before - 1
}

// next sets why a record does not follow on the one before it; nothing if it does, or if that cannot be known. A line between the two that is no
// record changes nothing: either it was added, and the next record follows, or it stands in the place of one, and then the next follows on it.
func (c *chain) next(r *Record, err error) {
	if err != nil {
		bad, ok := errors.AsType[*BadLine](err)
		switch {
		case !ok:
			*c = chain{}
		case c.hasPrev && bad.seq == c.seq+1 && c.leaf.is(bad.prev):
			c.seq, c.leaf = bad.seq, bad.leaf
		}
		return
	}
	before := *c
	*c = chain{r.Seq, r.Session, r.leaf, r.Prev != ""}
	switch {
	case before.seq == 0:
	case before.hasPrev != c.hasPrev:
		r.Loose, r.IsBroken = "one of it and the record before has a hash of the one before that, and the other has none", r.Seq == before.seq+1
	case !c.hasPrev && before.session != c.session: // a stream of another process
	case r.Seq != before.seq+1:
		r.Loose = fmt.Sprintf("the record before is %d", before.seq)
	case c.hasPrev && !before.leaf.is(r.Prev):
		r.Loose, r.IsBroken = "its hash of the record before does not fit", true
	}
}
