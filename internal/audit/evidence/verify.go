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

	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// VerifyOptions name the log to verify, and the keys and checkpoints to verify it with.
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
	// Hold keeps the leaf hashes of the records behind After, 32 bytes each, for Report.Holds.
	Hold bool
	// AllowPruned takes a log that says that it removed its oldest records for whole.
	AllowPruned bool
	// Progress is told how many bytes of how many were read; it may be nil.
	Progress func(done, total int64)
}

// attempts at a log that changes under the reader: segments may be pruned in between.
const attempts = 5

// goingPause is how long an attempt waits for a log that is being pruned.
const goingPause = 20 * time.Millisecond

// errGoing means that segments are being removed during the verification.
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
		if fault, ok := errors.AsType[*Fault](err); ok {
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

	segments []segment.Entry
	own      string    // file of checkpoints beside the log
	start    string    // file with the tree of what was pruned
	notRead  string    // a segment that holds something, and that no other one declares void, though no record in it counts
	first    leafRange // that tree
	after    leafRange // the tree of what was verified before and is not compared again

	lastBefore expected // the last checkpoint of records that were pruned

	isLast   bool // of the attempts
	isUnheld bool // the checkpoints were read before the tree was written or records were pruned, or these were forged
	claims   claims

	beside  map[signed]bool // checkpoints that lie beside the log, if there are others to be told from them
	expect  []expected      // by size
	tree    leafRange
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
		if v.segments, strays, err = segment.List(v.o.Dir); err != nil {
			return err
		}
		if err := v.reportStrays(strays); err != nil {
			return err
		}
	}
	if len(v.segments) == 0 {
		if v.o.Dir != "" && len(v.expect) > 0 && v.expect[len(v.expect)-1].Size > 0 {
			e := v.expect[len(v.expect)-1]
			return &Fault{e.file, e.line, e.Size, "the checkpoint covers records, but there is no segment"}
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

// find sorts the named files into segments, checkpoints and start.
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
		switch s, ok := segment.EntryOf(file); {
		case ok:
			v.segments = append(v.segments, s)
		case filepath.Base(file) == CheckpointFile && v.own == "":
			v.own = file
		case filepath.Base(file) == StartFile && v.start == "":
			v.start = file
		default:
			return fmt.Errorf("%s is not a segment (audit-….jsonl, or packed audit-….jsonl.gz), nor the file %q or %q, or it is the second such file", file, CheckpointFile, StartFile)
		}
	}
	segment.SortByNumber(v.segments, func(s segment.Entry) (uint64, string) { return s.First, s.Path })
	return nil
}

// reportStrays names the entries of the directory that are not read. Those that other programs take for segments are a fault: Pipeguard makes none.
func (v *verification) reportStrays(strays []segment.Stray) error {
	for _, s := range strays {
		if s.Kind == segment.StrayClaim {
			return &Fault{s.Path, 0, 0, s.Why + ": it is not read"}
		}
	}
	var foreign []string
	for _, s := range strays {
		if s.Kind == segment.StrayLeft || s.Kind == segment.StrayRoom {
			v.report.Unused = append(v.report.Unused, filepath.Base(s.Path))
		} else {
			foreign = append(foreign, fmt.Sprintf("%s is not read: %s", s.Path, s.Why))
		}
	}
	v.report.incompleteBy(foreign, "%d more entries of the directory are not read")
	return nil
}

// reportUnnamed names the segments that hold no record and that no segment of the log declares void. A writer makes the next one before it has a
// record for it.
func (v *verification) reportUnnamed(unnamed []opening) (bytes int64) {
	last := max(v.first.end, v.report.LastSeq)
	var strange []string
	for _, o := range unnamed {
		bytes += o.Size
		if o.Size == 0 && segment.IsDue(o.First, last) {
			v.report.Unused = append(v.report.Unused, filepath.Base(o.Path))
			continue
		}
		if v.notRead == "" && o.Size > 0 {
			v.notRead = o.Path
		}
		strange = append(strange, fmt.Sprintf("%s is not read: %s", o.Path, noRecord))
	}
	v.report.incompleteBy(strange, "%d more segments are not read: "+noRecord)
	return bytes
}

// reportMisfits names the segments behind the last checkpoint that no start goes on from. What was signed counts by its hashes: another version may have written it.
func (v *verification) reportMisfits(order []opening, covered uint64) {
	var strange []string
	for _, o := range order {
		if o.Misfit != nil && o.First > covered {
			strange = append(strange, fmt.Sprintf("%s is not signed, and a start leaves it out: its first record does not open a segment of this log: %v", o.Path, o.Misfit))
		}
	}
	v.report.incompleteBy(strange, "%d more segments are not signed, and a start leaves them out: their first records do not open a segment of this log")
}

func (v *verification) startChanged() bool {
	now, err := readStart(v.start)
	return v.o.Dir != "" && err == nil && now.end != v.first.end
}
