package evidence

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

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
	unnamed := v.reportUnnamed(w.unnamed)
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
	v.tree, v.isRoot = leafRange{}, true
	gone := v.first.end // records of which no checkpoint is looked at
	if v.after.end > 0 {
		if first == 0 || first > v.after.end+1 {
			return &Fault{v.segments[0].Path, 0, v.after.end, "records up to this one were verified before, and are gone with those after them"}
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
		return &Fault{v.segments[0].Path, 0, v.first.end + 1, fmt.Sprintf("the log begins with record %d, and nothing accounts for records %d to %d", first, v.first.end+1, first-1)}
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
	v.report.FirstSeq = cmp.Or(v.report.FirstSeq, r.Seq)
	v.report.Records++
	v.report.LastSeq = r.Seq
	v.report.Read.Add(r.Leaf)
	if v.o.Hold && r.Seq > v.o.After.Last() {
		v.report.held.add(r)
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

// declared notes the faults that a record about the log declares.
func (v *verification) declared(r *Record) {
	if r.stage != string(audit.StageLogOpen) && r.stage != string(audit.StageLogClose) {
		return
	}
	d, err := r.logOf()
	if err != nil { // it declares nothing
		return
	}
	switch {
	case d.Fault == "":
	case r.Seq == 1:
		v.report.begun = d.Fault
	default:
		v.report.declare(r.Seq, d.Fault)
	}
	if d.Lost > 0 {
		v.report.declare(r.Seq, fmt.Sprintf("%d records were dropped before it", d.Lost))
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
				"between this record and record %d (%s line %d) the log differs from the one that the checkpoint in %s line %d signs", e.Size, at.file, at.line, e.file, e.line)}
		}
		v.matched = place{}
		v.covered(e)
		s, _ := segment.EntryOf(at.file)
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
	r.SignedAt = later(r.SignedAt, e.SignedAt)
	for _, w := range e.Witnesses {
		r.Witnessed = e.Size
		r.witnessedBy[w.Name] = r.witnessedBy[w.Name].latest(byWitness{e.Size, w.At})
		r.WitnessedAt = later(r.WitnessedAt, w.At)
	}
}

// end looks for checkpoints of records that were not found, and completes the counts.
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
	v.reportMisfits(w.order, covered)
	if after := v.o.After.Last(); r.LastSeq < after {
		return &Fault{v.segments[len(v.segments)-1].Path, 0, r.LastSeq + 1, fmt.Sprintf("records up to %d were verified before, and those after %d are gone", after, r.LastSeq)}
	}
	if v.after.end == 0 && first > 1 && r.PrunedUntil < first-1 {
		gone := Range{r.PrunedUntil + 1, first - 1}
		isUnsigned := len(v.o.Keys.all) > 0 && covered == 0 // without a checkpoint nothing is proven, not even that an attacker removed them
		switch {
		case len(v.o.Files) == 0 && !isUnsigned:
			v.isUnheld = true
			return &Fault{v.segments[0].Path, 0, gone.First, fmt.Sprintf("records %d to %d are gone, and no LogPrune record that its own process signed says that they were removed", gone.First, gone.Last)}
		case len(v.o.Files) == 0 || v.isRoot:
			r.Missing = append(r.Missing, gone)
		}
	}
	if first <= 1 {
		r.PrunedUntil = 0 // the removal had not taken place yet
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
			return &Fault{e.file, e.line, e.Size, "the checkpoint covers records that the tree of the log does not reach"}
		}
	case len(v.o.Files) > 0:
		r.Missing = append(r.Missing, Range{r.LastSeq + 1, e.Size})
	case v.notRead != "":
		return &Fault{v.notRead, 0, r.LastSeq + 1, fmt.Sprintf("no record in it counts, and the checkpoint in %s covers %d records, of which the other segments hold %d", e.file, e.Size, r.LastSeq)}
	default:
		return &Fault{e.file, e.line, r.LastSeq + 1, fmt.Sprintf("the checkpoint covers %d records, but the log ends with record %d: records at its end are gone", e.Size, r.LastSeq)}
	}
	return nil
}
