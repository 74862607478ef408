package segment

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Found describes the log in a directory when it was opened.
type Found struct {
	First uint64 // number of the oldest record that is there, 0 in an empty log
	Last  uint64 // number of the last one
	// Session is that of the last record.
	Session string

	surveyed
	disk    Disk
	leaf    [32]byte // of the last record
	torn    int64    // bytes behind it
	fault   string
	orphans []audit.Event // open intents, oldest first
}

// read finds where the log ends and what is open. Records under a checkpoint are known to have been durable.
func read(disk Disk, signed Signed) (*Found, error) {
	s, err := survey(disk, signed)
	if err != nil {
		return nil, err
	}
	f := &Found{disk: disk, surveyed: s}
	f.end(signed.Size)
	f.void = append(f.void, f.replaced()...)
	if len(f.parts) == 0 {
		return f, nil
	}
	f.First = f.parts[0].first
	return f, f.open()
}

// replaced are the segments behind a sealed end whose place the next segment takes, so that it can declare them void. A start that was killed before it was
// signed leaves such a segment, and an attacker can add one.
func (f *Found) replaced() (names []string) {
	followed := map[string]bool{}
	for _, name := range f.behind {
		if p, _, err := look(f.disk, name, 0); err == nil && p.opening.Log != nil {
			followed[p.opening.Log.PreviousSegment] = true
		}
	}
	for _, name := range f.behind {
		if first, _ := ParseName(name); first == f.Last+1 && !followed[name] {
			names = append(names, name)
		}
	}
	return names
}

// end records where the log ends. Records under a checkpoint were durable.
func (f *Found) end(covered uint64) {
	e := f.ending
	if n := len(f.parts); n > 0 {
		last := &f.parts[n-1]
		f.Last, f.Session, f.leaf = e.Seq, e.session, e.leaf
		last.last, last.bytes, f.torn = e.Seq, e.Bytes, last.size-e.Bytes
		f.fault = e.fault(last.name, last.size)
	}
	if f.Last < covered {
		f.fault = fmt.Sprintf("records up to %d were here, and the last one is %d", covered, f.Last)
		f.Last = covered // a number under a signed checkpoint is never given again
	}
}

// open finds the intents that nothing ended. The opening of the last segment says how far back they may be.
func (f *Found) open() error {
	start := len(f.parts) - 1
	if l := f.parts[start].opening.Log; l == nil { // it cannot be read: any of them may be open
		start = 0
	} else if l.OldestOpen > 0 {
		for start > 0 && f.parts[start].first > l.OldestOpen {
			start--
		}
	}
	open := map[uint64]audit.Event{} // by their numbers
	for i := range f.parts[start:] {
		err := f.parts[start+i].lines(f.disk, func(line []byte, _ int64) bool {
			h, ok := parseHead(line)
			switch {
			case !ok:
			case h.ends():
				delete(open, h.intentSeq)
			case h.begins():
				if e, err := audit.Parse(line); err == nil {
					open[h.seq] = e
				}
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	for _, e := range open {
		f.orphans = append(f.orphans, e)
	}
	slices.SortFunc(f.orphans, func(a, b audit.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	return nil
}
