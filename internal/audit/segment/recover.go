package segment

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Found is what a directory held when it was opened.
type Found struct {
	First uint64 // number of the oldest record that is there, 0 in an empty log
	Last  uint64 // number of the last one
	// Session is that of the last record.
	Session string

	disk     Disk
	parts    []part
	void     []string          // files without a record that no segment names
	declared []declared        // those that one does
	held     map[string]string // what these held then
	aside    []string          // segments that the log does not go on from
	misfit   map[string]error  // why the openings of some of these are none
	behind   []string          // segments that stand behind an end that was signed
	sealed   bool              // the last record is such an end
	leaf     [32]byte          // of the last record
	torn     int64             // bytes behind it
	fault    string
	orphans  []audit.Event // open intents, oldest first
}

// Leaves are the leaf hashes of the records that are there, from First to Last. An error is the last value.
func (f *Found) Leaves() iter.Seq2[[32]byte, error] {
	return func(yield func([32]byte, error) bool) {
		for i := range f.parts {
			more := true
			err := f.parts[i].lines(f.disk, func(line []byte, _ int64) bool {
				more = yield(Leaf(line), nil)
				return more
			})
			if err != nil {
				yield([32]byte{}, err)
				return
			}
			if !more {
				return
			}
		}
	}
}

// read finds where the log ends and what is open. Records under a checkpoint are known to have been durable.
func read(disk Disk, signed Signed) (*Found, error) {
	s, err := survey(disk, signed)
	if err != nil {
		return nil, err
	}
	f := &Found{disk: disk, parts: s.parts, void: s.void, declared: s.named, held: s.held, aside: s.aside, misfit: s.misfit, behind: s.behind, sealed: s.sealed}
	if err := f.end(signed.Size); err != nil {
		return nil, err
	}
	f.void = append(f.void, f.replaced()...)
	if len(f.parts) == 0 {
		return f, nil
	}
	f.First = f.parts[0].first
	return f, f.open()
}

// replaced are those segments behind a sealed end that the next segment takes the place of and can therefore declare void: a start that was killed
// before it was signed leaves such a one, and so may anybody.
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

// end finds the last record. Lines that do not continue the log at its very end are what a crash leaves of a batch that was not
// acknowledged, and are let go; so are records that stand there a second time. Further ahead, or where a checkpoint says that records were durable, no crash makes them: they stay in the
// log for the reader to find, and the numbers go on after them. What stands behind a record that closed the segment is no part of the log.
func (f *Found) end(covered uint64) error {
	for len(f.parts) > 0 {
		last := &f.parts[len(f.parts)-1]
		r, _, err := f.disk.Read(last.name)
		if err != nil {
			return fmt.Errorf("read segment %s: %w", last.name, err)
		}
		m, err := measure(last.first, last.size, io.LimitReader(r, last.bytes), true)
		if err = errors.Join(err, r.Close()); err != nil {
			return fmt.Errorf("read segment %s: %w", last.name, err)
		}
		end := m.good
		if m.closed {
			f.fault = fmt.Sprintf("from line %d on, %s has lines behind the record that closed it", m.bad, last.name)
		} else if m.bad > 0 && (!m.isLeftByCrash(last.size) || m.good.seq < covered) {
			end = m.all
			f.fault = fmt.Sprintf("line %d of %s is not what was written there", m.bad, last.name)
		} else if m.repeats {
			f.fault = fmt.Sprintf("from line %d on, %s repeats records", m.bad, last.name)
		}
		if end.bytes == 0 { // the crash came before the first record was durable
			f.void = append(f.void, last.name)
			if f.parts = f.parts[:len(f.parts)-1]; len(f.parts) > 0 {
				before := &f.parts[len(f.parts)-1]
				before.bytes = before.size
			}
			continue
		}
		f.Last, f.Session, f.leaf = end.seq, end.session, end.leaf
		last.last, last.bytes, f.torn = end.seq, end.bytes, last.size-end.bytes
		break
	}
	if f.Last < covered {
		f.fault = fmt.Sprintf("records up to %d were here, and the last one is %d", covered, f.Last)
		f.Last = covered // a number under a signed checkpoint is never given again
	}
	return nil
}

// position is behind a record.
type position struct {
	seq     uint64
	session string
	bytes   int64
	leaf    [32]byte
}

// measured is where a segment ends: good before the first line that does not continue the log, all behind every whole line.
type measured struct {
	good, all position
	bad       int // that line, counted from 1, 0 if there is none
	// altered says that it is a whole record, of another place: what a crash leaves unwritten is no record.
	altered bool
	// repeats says that it is, and that nothing is lost without it: no record from there on has a number that the log does not have before.
	repeats bool
	// closed says that the line before it closed the segment, behind which no writer writes and no crash leaves lines.
	closed bool
}

// isLeftByCrash says whether a crash can have left what follows the last good record: the rest of a batch, or anything after the record that closed the segment.
func (m measured) isLeftByCrash(size int64) bool {
	return m.bad == 0 || m.closed || !m.altered && size-m.good.bytes <= MaxLost
}

// measure finds where a segment ends, given the number in its name, its size and its contents. Unless wantsAll is set, it stops reading as soon as the rest cannot be
// the remains of a crash.
func measure(first uint64, size int64, text io.Reader, wantsAll bool) (m measured, err error) {
	m.good.seq, m.all.seq = first-1, first-1
	number, previous, closed := 0, "", false
	err = scan(text, func(line []byte, end int64) bool {
		if number++; closed {
			m.bad, m.closed = number, true
			return false
		}
		h, ok := parseHead(line)
		ok = ok && json.Valid(line)
		opensAnother := number > 1 && h.kind == string(audit.TypeLog) && h.stage == string(audit.StageLogOpen)
		if m.bad == 0 && (!ok || h.seq != m.good.seq+1 || number > 1 && h.prev != previous || opensAnother) {
			m.bad, m.repeats = number, ok && h.seq <= m.good.seq
			m.altered = ok && !m.repeats
		} else if m.repeats && ok && h.seq > m.good.seq {
			m.altered, m.repeats = true, false
		}
		m.all.seq, m.all.bytes, m.all.leaf = m.all.seq+1, end, Leaf(line)
		if ok {
			m.all.session = h.session
			// No segment holds more records than bytes.
			if h.seq > m.all.seq && h.seq < first+uint64(size) { // #nosec G115 -- a size
				m.all.seq = h.seq
			}
		}
		if m.bad == 0 {
			m.good = m.all
			closed = ClosesSegment(line)
		}
		if m.bad == 0 {
			previous = encodeLeaf(m.all.leaf)
		}
		return wantsAll || m.isLeftByCrash(size)
	})
	return m, err
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
	open := map[string]audit.Event{}
	for i := range f.parts[start:] {
		err := f.parts[start+i].lines(f.disk, func(line []byte, _ int64) bool {
			h, ok := parseHead(line)
			switch {
			case !ok || h.kind != string(audit.TypeRequest):
			case h.stage != string(audit.StageRequestReceived):
				delete(open, h.id)
			default:
				if e, err := audit.Parse(line); err == nil {
					open[h.id] = e
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
