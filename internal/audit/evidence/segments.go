package evidence

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// listForReaders leaves out the room that a process keeps which writes the log: there is nothing in it that could be read.
func listForReaders(dir string) ([]segment.Entry, []segment.Stray, error) {
	segments, strays, err := segment.List(dir)
	return segments, slices.DeleteFunc(strays, func(s segment.Stray) bool { return s.Kind == segment.StrayRoom }), err
}

// Part is a segment that readers read, and how much of it belongs to the log.
type Part struct {
	Path  string
	First uint64
	// Bytes of it are of the log, from its beginning, as they were written; -1 if nothing says where they end.
	Bytes int64
	// Torn is how many bytes may stand behind them: the log declares them, and they are no part of it.
	Torn int64
	// By is the segment that says so, empty if none does.
	By string
}

// noRecord is the reason given for a segment without a first record that no other segment declares void.
const noRecord = "no record in it counts, and no record of the log says why: the segment was not begun, or was planted"

// List returns what readers read of the log in dir, in the order of the records, and what they leave alone. It verifies nothing: of a log that
// Verify finds no fault with, these are the parts that it covers. A packed one whose beginning is damaged is among them: reading it says so.
func List(dir string) ([]Part, []segment.Stray, error) {
	segments, strays, err := listForReaders(dir)
	if err != nil {
		return nil, nil, err
	}
	var parts []Part
	all, err := lookAll(segments, false, func(s segment.Entry) { parts = append(parts, Part{Path: s.Path, First: s.First, Bytes: -1}) })
	if err != nil {
		return nil, nil, err
	}
	order, _, unnamed := inOrder(all)
	for i, o := range order {
		p := Part{Path: o.Path, First: o.First, Bytes: -1}
		if i+1 < len(order) {
			p.By = order[i+1].Path
			p.Bytes, p.Torn = order[i+1].endOf(o)
		}
		parts = append(parts, p)
	}
	segment.SortByNumber(parts, func(p Part) (uint64, string) { return p.First, filepath.Base(p.Path) })
	for _, o := range all {
		if !o.Counts && o.Opens {
			strays = append(strays, o.void())
		}
	}
	for _, o := range unnamed {
		mayBeNext := o.Size == 0 && (len(order) == 0 || o.First > order[len(order)-1].First)
		switch {
		case o.Opens || mayBeNext:
		case o.Size == 0:
			strays = append(strays, segment.Stray{Path: o.Path, Why: noRecord})
		default:
			strays = append(strays, segment.Stray{Path: o.Path, Why: noRecord, Kind: segment.StrayMute})
		}
	}
	return parts, strays, nil
}

// void says of a segment with a record that another segment declares that none in it counts. Without the keys nothing says whether that is the log's own word.
func (o opening) void() segment.Stray {
	s := segment.Stray{Path: o.Path, Why: "it begins with a record, and another segment declares that none in it counts"}
	f, err := OpenSegment(o.Path)
	if err != nil {
		s.Kind = segment.StrayHolding
		return s
	}
	defer f.Close() //nolint:errcheck // only read
	in := segment.NewLines(f, audit.MaxRecord, audit.MaxRecord)
	for err == nil {
		var raw []byte
		var r Record
		raw, err = in.Next()
		if err == nil && (parseRecord(raw, &r) != nil || !r.isLog) || errors.Is(err, audit.ErrTooLong) {
			s.Kind, s.Why = segment.StrayHolding, "it holds records, and another segment declares that none of them counts"
			return s
		}
	}
	return s
}

// ListAll is List for a log that was changed: it leaves out no segment and nothing in one, whatever they say of each other.
func ListAll(dir string) ([]Part, []segment.Stray, error) {
	segments, strays, err := listForReaders(dir)
	if err != nil {
		return nil, nil, err
	}
	var parts []Part
	for _, s := range segments {
		parts = append(parts, Part{Path: s.Path, First: s.First, Bytes: -1})
	}
	return parts, strays, nil
}

// endOf is how many bytes of the segment before are of the log, as o declares, and how many more it declares. If more stand there, it says nothing: nothing
// is left out that the log does not account for.
func (o opening) endOf(before opening) (bytes, torn int64) {
	d := o.declared
	behind := before.Size - d.PreviousBytes
	if d.PreviousSegment != before.Given || d.PreviousBytes < 0 || !before.isPacked && (behind < 0 || behind > int64(d.TornBytes)) {
		return -1, 0
	}
	return d.PreviousBytes, int64(d.TornBytes)
}
