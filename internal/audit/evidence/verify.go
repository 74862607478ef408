package evidence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// VerifyOptions say what is verified, and against what.
type VerifyOptions struct {
	// Dir is a log. Files are copies of files of one instead: segments, checkpoints, start, in any order; some may be missing.
	Dir   string
	Files []string
	// Keys are those of the log, old ones among them, and of witnesses. Without any, only the records are compared with each other.
	Keys Keys
	// Outside are files of checkpoints that were not kept where the log was. To trust one from the same place proves nothing.
	Outside []string
	// RequireWitness lets an outside checkpoint count only if a known witness cosigned it. The others must fit the log all the same.
	RequireWitness bool
	// Origin is the log that it must be; empty for the one that the checkpoints name.
	Origin string
	// After is a Position that an earlier verification of Dir came to: the log must go on from there. What lies before the segment that it ends in is not read
	// again, and checkpoints up to it are not compared again, unless Again says so, or records behind it are gone or covered by the file start. The zero
	// Position is the beginning, and the one for Files.
	After Position
	Again bool
	// Visit is told the number and the leaf hash of each record that is read; nil if nobody wants to know. A reading that is begun anew tells them anew.
	Visit func(seq uint64, leaf [32]byte)
	// AllowPruned takes a log that says that it removed its oldest records for whole.
	AllowPruned bool
	// Progress is told how many bytes of how many were read; nil if nobody wants to know.
	Progress func(done, total int64)
}

// attempts at a log that changes under the reader: segments may be pruned in between.
const attempts = 5

// goingPause is how long an attempt waits for a log that is being pruned.
const goingPause = 20 * time.Millisecond

// errGoing means that segments are being removed.
var errGoing = errors.New("records are being removed")

// Verify reads a log once, holding one record and its checkpoints in memory. The error is one of reading or of what was asked; what is wrong
// with the log is in the report.
func Verify(ctx context.Context, o VerifyOptions) (Report, error) {
	for attempt := 1; ; attempt++ {
		v := newVerification(o)
		v.isLast = o.Dir == "" || attempt == attempts
		err := v.run(ctx)
		if errors.Is(err, errFromStart) {
			o.Again = true
			attempt--
			continue
		}
		var fault *Fault
		if errors.As(err, &fault) {
			v.report.Fault, err = fault, nil
		}
		moved := errors.Is(err, fs.ErrNotExist) || errors.Is(err, errGoing) || v.report.Fault != nil && (v.isUnheld || v.startChanged())
		if o.Dir != "" && len(v.segments) > 0 && moved && attempt < attempts {
			if errors.Is(err, errGoing) {
				time.Sleep(goingPause)
			}
			continue
		}
		if err != nil {
			return Report{}, fmt.Errorf("verify audit log: %w", err)
		}
		v.report.conclude(o)
		return v.report, nil
	}
}

// verification is one attempt.
type verification struct {
	o       VerifyOptions
	keepRaw bool // of checkpoints: a proof holds one
	report  Report

	segments []Segment
	own      string // file of checkpoints beside the log
	start    string // file with the tree of what was pruned
	notRead  string // a segment that holds something, and that no other one declares void, though no record in it counts
	first    span   // that tree
	after    span   // the tree of what was verified before and is not compared again

	lastBefore expected // the last checkpoint of records that were pruned

	isLast   bool // of the attempts
	isUnheld bool // the checkpoints were read before the tree was written or records were pruned, or these were forged
	claims   claims

	beside  map[signed]bool // checkpoints that lie beside the log, if there are others to be told from them
	expect  []expected      // by size
	tree    span
	isRoot  bool  // the tree is of all records up to its end
	matched place // the first record behind the last checkpoint that fit
}

type place struct {
	file string
	line int
	seq  uint64
}

func newVerification(o VerifyOptions) *verification {
	return &verification{o: o, report: Report{
		Schema: reportSchema, Origin: o.Origin, Incomplete: []string{}, Limits: []string{}, Missing: []Range{},
		witnessedBy: map[string]byWitness{}, cosignings: cosignings{}, HadKeys: len(o.Keys.all) > 0,
	}}
}

func (v *verification) run(ctx context.Context) error {
	if err := v.find(); err != nil {
		return err
	}
	if err := v.collect(); err != nil {
		return err
	}
	if v.o.Dir != "" { // listed after the checkpoints were read: every record that they cover is there
		var err error
		var strays []segment.Stray
		if v.segments, strays, err = listSegments(v.o.Dir); err != nil {
			return err
		}
		if err := v.judge(strays); err != nil {
			return err
		}
	}
	if len(v.segments) == 0 {
		if v.o.Dir != "" && len(v.expect) > 0 && v.expect[len(v.expect)-1].Size > 0 {
			e := v.expect[len(v.expect)-1]
			return &Fault{e.file, e.line, e.Size, "the checkpoint is of a log with records, and there is no segment"}
		}
		if v.o.Dir != "" {
			return fmt.Errorf("%s holds no segments (audit-<20 digits>-<uuid>.jsonl)", v.o.Dir)
		}
		return errors.New("there is no segment (audit-<20 digits>-<uuid>.jsonl) among the files")
	}
	var err error
	if v.first, err = readStart(v.start); err != nil {
		return err
	}
	if err := v.goOn(); err != nil {
		return err
	}
	return v.walk(ctx)
}

// find says which files are what.
func (v *verification) find() error {
	switch {
	case (v.o.Dir == "") == (len(v.o.Files) == 0):
		return errors.New("name a directory or files")
	case v.o.Dir != "":
		v.own, v.start = filepath.Join(v.o.Dir, CheckpointFile), filepath.Join(v.o.Dir, StartFile)
		return nil
	}
	var before []os.FileInfo
	for _, file := range v.o.Files {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(before, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
			return fmt.Errorf("%s is given twice", file)
		}
		before = append(before, info)
		switch s, ok := parseSegment(file); {
		case ok:
			v.segments = append(v.segments, s)
		case filepath.Base(file) == CheckpointFile && v.own == "":
			v.own = file
		case filepath.Base(file) == StartFile && v.start == "":
			v.start = file
		default:
			return fmt.Errorf("%s is no segment (audit-….jsonl, or packed audit-….jsonl.gz), no %q and no %q, or the second of them", file, CheckpointFile, StartFile)
		}
	}
	segment.SortByNumber(v.segments, func(s Segment) (uint64, string) { return s.First, s.Path })
	return nil
}

// judge names what lies in the directory of the log and is not read. What other programs take for a segment was put there by none of ours.
func (v *verification) judge(strays []segment.Stray) error {
	for _, s := range strays {
		if s.Kind == segment.StrayClaim {
			return &Fault{s.Path, 0, 0, s.Why + ": it is not read"}
		}
	}
	foreign := 0
	for _, s := range strays {
		switch {
		case s.Kind == segment.StrayLeft, s.Kind == segment.StrayRoom:
			v.report.Unused = append(v.report.Unused, filepath.Base(s.Path))
		case foreign < maxNamed:
			foreign++
			v.report.incomplete("%s is not read: %s", s.Path, s.Why)
		default:
			foreign++
		}
	}
	if foreign > maxNamed {
		v.report.incomplete("%d more entries of the directory are not read", foreign-maxNamed)
	}
	return nil
}

// judgeUnnamed names the segments that hold no record and that no segment of the log declares void. A writer makes the next one before it has a
// record for it.
func (v *verification) judgeUnnamed(unnamed []opening) (bytes int64) {
	last, strange := max(v.first.end, v.report.LastSeq), 0
	for _, o := range unnamed {
		bytes += o.size
		switch {
		case o.size == 0 && segment.IsDue(o.First, last):
			v.report.Unused = append(v.report.Unused, filepath.Base(o.Path))
		case strange < maxNamed:
			strange++
			if v.notRead == "" && o.size > 0 {
				v.notRead = o.Path
			}
			v.report.incomplete("%s is not read: %s", o.Path, noRecord)
		default:
			strange++
		}
	}
	if strange > maxNamed {
		v.report.incomplete("%d more segments are not read: "+noRecord, strange-maxNamed)
	}
	return bytes
}

// judgeOpenings names the segments behind the last checkpoint that no start goes on from. What was signed counts by its hashes: another version may have written it.
func (v *verification) judgeOpenings(order []opening, covered uint64) {
	strange := 0
	for _, o := range order {
		if o.misfit == nil || o.First <= covered {
			continue
		}
		if strange++; strange <= maxNamed {
			v.report.incomplete("%s is not signed, and a start leaves it out: its first record is none that opens a segment of this log: %v", o.Path, o.misfit)
		}
	}
	if strange > maxNamed {
		v.report.incomplete("%d more segments are not signed, and a start leaves them out: their first records are none that open a segment of this log", strange-maxNamed)
	}
}

func (v *verification) startChanged() bool {
	now, err := readStart(v.start)
	return v.o.Dir != "" && err == nil && now.end != v.first.end
}

// walk reads the records.
func (v *verification) walk(ctx context.Context) error {
	var total, done int64
	for _, s := range v.segments {
		info, err := os.Stat(s.Path)
		if err != nil {
			return err
		}
		total += info.Size()
	}
	w := &walk{isPartial: len(v.o.Files) > 0, visit: v.visit, gone: v.report.declare}
	told := time.Time{}
	w.read = func(n int64) {
		done += n
		if v.o.Progress != nil && done&(1<<20-1) < n && time.Since(told) > 100*time.Millisecond {
			told = time.Now()
			v.o.Progress(done, total)
		}
	}
	if n := len(v.expect); n > 0 {
		w.signed.Size = v.expect[n-1].Size
	}
	first, err := w.sort(ctx, v.segments)
	if err == nil {
		err = v.begin(w, first)
	}
	if err != nil {
		return err
	}
	err = w.run(ctx)
	v.report.Segments, v.report.Bytes = len(v.segments), done
	v.report.Missing = append(v.report.Missing, w.missing...)
	unnamed := v.judgeUnnamed(w.unnamed)
	v.report.TornBytes, v.report.IgnoredBytes = w.torn+unnamed, w.ignored-unnamed
	v.report.Parts, v.report.Torn = w.parts, w.torn
	v.report.Incomplete = append(v.report.Incomplete, w.unheld...)
	v.report.Void = w.void
	if err != nil {
		return err
	}
	return v.end(w, first)
}

// begin finds the tree that the first record is added to; first is that record's number, 0 if there is none.
func (v *verification) begin(w *walk, first uint64) error {
	v.tree, v.isRoot = span{}, true
	gone := v.first.end // records of which no checkpoint is looked at
	if v.after.end > 0 {
		if first == 0 || first > v.after.end+1 {
			return &Fault{v.segments[0].Path, 0, v.after.end, "records up to this one were verified, and are gone with what followed on them"}
		}
		v.tree = v.after.clone()
		v.expect = slices.DeleteFunc(v.expect, func(e expected) bool { return e.Size <= v.after.end })
		return nil
	}
	switch {
	case first == 1:
		gone = 0
	case first == 0 && v.first.end > 0 && w.isPartial:
		v.report.Missing = append(v.report.Missing, Range{1, v.first.end})
		v.isRoot = false
	case first <= v.first.end && v.first.end > 0:
		if err := v.overlap(first, w.isPartial); err != nil {
			return err
		}
		v.tree = v.first.clone()
		gone++
	case first == 0 || v.first.end == first-1:
		v.tree = v.first.clone()
	case w.isPartial:
		v.report.Missing = append(v.report.Missing, Range{1, first - 1})
		v.isRoot = false
	default:
		return &Fault{v.segments[0].Path, 0, v.first.end + 1, fmt.Sprintf("the log begins with record %d, and nothing says what became of records %d to %d", first, v.first.end+1, first-1)}
	}
	for v.isRoot && len(v.expect) > 0 && v.expect[0].Size < gone {
		if err := v.before(v.expect[0]); err != nil {
			return err
		}
		v.expect = v.expect[1:]
	}
	return v.fits(place{v.segments[0].Path, 0, first})
}

// visit adds a record to the tree. Records up to the start of the tree are there only while pruning is under way; see
// overlap.
func (v *verification) visit(r *Record) error {
	if v.report.FirstSeq == 0 {
		v.report.FirstSeq = r.Seq
	}
	v.report.Records++
	v.report.LastSeq = r.Seq
	v.report.Read.Add(r.Leaf)
	if v.o.Visit != nil {
		v.o.Visit(r.Seq, r.Leaf)
	}
	v.claims.add(r)
	v.declared(r)
	switch {
	case !v.isRoot || r.Seq <= v.tree.end:
		return nil
	case r.Seq != v.tree.end+1: // behind a gap
		v.isRoot = false
		return nil
	}
	if v.matched.seq == 0 {
		v.matched = place{r.File, r.Line, r.Seq}
	}
	v.tree.append(r.Leaf)
	if after := &v.o.After.tree; v.o.Again && v.tree.end == after.end && v.tree.root() != after.root() {
		return &Fault{r.File, r.Line, r.Seq, "the records up to this one are not those that were verified before"}
	}
	return v.fits(place{r.File, r.Line, r.Seq})
}

// declared notes what a record of the log's own says went wrong with it.
func (v *verification) declared(r *Record) {
	if r.stage != string(audit.StageLogOpen) && r.stage != string(audit.StageLogClose) {
		return
	}
	f, err := r.logOf()
	if err != nil { // it declares nothing
		return
	}
	d := f.Log
	switch {
	case d.Fault == "":
	case r.Seq == 1:
		v.report.begun = d.Fault
	default:
		v.report.declare(r.Seq, d.Fault)
	}
	if d.Lost > 0 {
		v.report.declare(r.Seq, fmt.Sprintf("%d records were let go before it", d.Lost))
	}
	if d.Unwritten > 0 {
		v.report.declare(r.Seq, fmt.Sprintf("%d requests and connections have no record", d.Unwritten))
	}
}

// fits compares the tree with the checkpoints of its size.
func (v *verification) fits(at place) error {
	for len(v.expect) > 0 && v.expect[0].Size == v.tree.end && v.isRoot {
		e := v.expect[0]
		v.expect = v.expect[1:]
		if root := v.tree.root(); root != e.Root {
			from := v.matched
			if from.seq == 0 {
				from = at
			}
			return &Fault{from.file, from.line, from.seq, fmt.Sprintf(
				"between this record and record %d (%s line %d) the log is not the one of which the checkpoint in %s line %d was signed", e.Size, at.file, at.line, e.file, e.line)}
		}
		v.matched = place{}
		v.covered(e)
		s, _ := parseSegment(at.file)
		v.report.Position = Position{v.tree.clone(), s.First, max(v.o.After.rank, v.report.Position.rank, e.rank)}
	}
	return nil
}

func (v *verification) covered(e expected) {
	r := &v.report
	r.Checkpoints++
	if e.isOutside {
		r.OutsideCovered = e.Size
	} else {
		r.OwnCovered = e.Size
	}
	if e.SignedAt.After(r.SignedAt) {
		r.SignedAt = e.SignedAt
	}
	for _, w := range e.Witnesses {
		r.Witnessed = e.Size
		r.witnessedBy[w.Name] = r.witnessedBy[w.Name].latest(byWitness{e.Size, w.At})
		if w.At.After(r.WitnessedAt) {
			r.WitnessedAt = w.At
		}
	}
}

// end looks at checkpoints of records that were not found.
func (v *verification) end(w *walk, first uint64) error {
	r := &v.report
	covered := max(r.OwnCovered, r.OutsideCovered)
	signed := covered
	if len(v.o.Keys.all) == 0 {
		signed = anyone
	}
	r.PrunedUntil, r.takenOver = v.claims.pruned(signed), v.claims.takenOver(signed)
	r.ended = v.claims.ended(r.takenOver)
	for _, o := range w.overruled {
		o.Unsigned = len(v.o.Keys.all) == 0 || o.First > covered || within(r.takenOver, o.First)
		r.Overruled = append(r.Overruled, o)
	}
	v.judgeOpenings(w.order, covered)
	if after := v.o.After.Last(); r.LastSeq < after {
		return &Fault{v.segments[len(v.segments)-1].Path, 0, r.LastSeq + 1, fmt.Sprintf("records up to %d were verified, and those behind %d are gone", after, r.LastSeq)}
	}
	if v.after.end == 0 && first > 1 && r.PrunedUntil < first-1 {
		gone := Range{r.PrunedUntil + 1, first - 1}
		isUnsigned := len(v.o.Keys.all) > 0 && covered == 0 // no checkpoint says anything, also not that they were removed by others
		switch {
		case len(v.o.Files) == 0 && !isUnsigned:
			v.isUnheld = true
			return &Fault{v.segments[0].Path, 0, gone.First, fmt.Sprintf("records %d to %d are gone, and no LogPrune record that its own process signed says that they were removed", gone.First, gone.Last)}
		case len(v.o.Files) == 0 || v.isRoot:
			r.Missing = append(r.Missing, gone)
		}
	}
	if first <= 1 {
		r.PrunedUntil = 0 // it was about to be
	} else {
		r.PrunedUntil = min(r.PrunedUntil, first-1)
	}
	if v.isRoot && r.LastSeq == v.tree.end {
		r.Root = v.tree.root().String()
	}
	if len(v.expect) == 0 {
		return nil
	}
	e := v.expect[len(v.expect)-1]
	switch {
	case e.Size <= r.LastSeq:
		if v.isRoot { // the tree begins behind the last record: pruning is under way
			return &Fault{e.file, e.line, e.Size, "the checkpoint is of records that the tree of the log does not reach"}
		}
	case len(v.o.Files) > 0:
		r.Missing = append(r.Missing, Range{r.LastSeq + 1, e.Size})
	case v.notRead != "":
		return &Fault{v.notRead, 0, r.LastSeq + 1, fmt.Sprintf("no record in it counts, and the checkpoint in %s is of %d records, of which %d are elsewhere", e.file, e.Size, r.LastSeq)}
	default:
		return &Fault{e.file, e.line, r.LastSeq + 1, fmt.Sprintf("the checkpoint is of %d records, and the log ends with record %d: records at its end are gone", e.Size, r.LastSeq)}
	}
	return nil
}
