package segment

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	strictjson "sigs.k8s.io/json"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// part is a segment.
type part struct {
	name    string
	first   uint64
	last    uint64    // of those that are closed, 0 if not known
	bytes   int64     // how much of it belongs to the log
	size    int64     // of the file, with what stands behind the log
	held    int64     // how much of the disk its part of the log takes
	refused taken     // how much of it refusals take
	echoed  int64     // how much of it ends take that starts wrote for such records
	added   int64     // how much of it records take that no checkpoint covered when a start took them over
	ended   time.Time // when the next one was begun
	opening audit.Event
	misfit  error // why the first line is no opening of the segment, nil if it is one
}

// opens says whether the first line is a record of the number in the name.
func (p *part) opens() bool { return p.opening.Seq == p.first }

// seen is a segment of the directory, with what its first line says.
type seen struct {
	part
	link Link
}

// lookAll reads the first line of each segment.
func lookAll(disk Disk) ([]seen, error) {
	names, err := disk.Names()
	if err != nil {
		return nil, fmt.Errorf("list segments: %w", err)
	}
	var all []seen
	var links []Link
	for _, name := range names {
		first, ok := ParseName(name)
		if !ok {
			continue
		}
		p, whole, err := look(disk, name, first)
		if err != nil {
			return nil, err
		}
		l := linkOf(name, p.size, p.opening, p.misfit)
		l.IsWhole = whole
		all, links = append(all, seen{p, l}), append(links, l)
	}
	for i, counts := range Counts(links) {
		all[i].link.Counts = counts
	}
	return all, nil
}

// declared is a segment in which no record counts, and the number of the first record of the segment that says so.
type declared struct {
	name string
	by   uint64
}

// surveyed are the segments of a directory: those that the log goes on from, in order, and the names of the others.
type surveyed struct {
	parts  []part
	void   []string          // that hold no record, and that no segment has named yet
	named  []declared        // that one has
	held   map[string]string // what these held then, as it declares
	aside  []string          // that hold records of no log
	misfit map[string]error  // why the openings of these are none, of those that are none
	behind []string          // that continue the hashes behind an end that was signed
	sealed bool              // the last record under the checkpoint is such an end
	sizes  map[string]int64  // of those of void and named
	ending Ending            // of the last part
}

// survey sorts what is in the directory, by what was signed.
func survey(disk Disk, signed Signed) (s surveyed, err error) {
	all, err := lookAll(disk)
	if err != nil {
		return surveyed{}, err
	}
	var whole []int // in all
	var links []Link
	for i := range all {
		if all[i].link.IsWhole {
			whole, links = append(whole, i), append(links, all[i].link)
		}
	}
	chained, err := Chain(links, signed, func(i int) (io.ReadCloser, error) {
		r, _, err := disk.Read(links[i].Given)
		return r, err
	})
	if err != nil {
		return surveyed{}, err
	}
	keep, behind := map[int]bool{}, map[int]bool{}
	for n, i := range whole {
		keep[i], behind[i] = chained.Keep[n], chained.Behind[n]
	}
	by, then := map[string]uint64{}, map[string]string{}
	for i := range all {
		if l := all[i].opening.Log; keep[i] && l != nil {
			for n, v := range l.Void {
				if v != all[i].name {
					by[v] = max(by[v], all[i].first)
				}
				if n < len(l.VoidHeld) {
					then[v] = l.VoidHeld[n]
				}
			}
		}
	}
	s.held, s.misfit, s.sizes = map[string]string{}, map[string]error{}, map[string]int64{}
	for i, p := range all {
		switch {
		case keep[i]:
			s.parts = append(s.parts, p.part)
		case by[p.name] > 0:
			s.named = append(s.named, declared{p.name, by[p.name]})
			s.held[p.name], s.sizes[p.name] = then[p.name], p.size
		case p.opening.Seq == 0 && p.size > MaxLost: // the first write to a segment is that of a batch, with its opening
			s.aside = append(s.aside, p.name)
			s.misfit[p.name] = fmt.Errorf("it has none, and its %d bytes are more than a crash leaves of a segment without: they are not read", p.size)
		case p.opening.Seq == 0:
			s.void = append(s.void, p.name)
			s.sizes[p.name] = p.size
		case behind[i]:
			s.behind = append(s.behind, p.name)
		default:
			s.aside = append(s.aside, p.name)
			if p.misfit != nil {
				s.misfit[p.name] = p.misfit
			}
		}
	}
	SortByNumber(s.parts, func(p part) (uint64, string) { return p.first, p.name })
	for _, names := range [][]string{s.void, s.aside, s.behind} {
		slices.Sort(names)
	}
	s.parts, s.sealed, s.ending = settle(s.parts), chained.Sealed, chained.Ending
	return s, nil
}

// settle sets where each part but the last ends.
func settle(parts []part) []part {
	for i := range len(parts) - 1 {
		p, next := &parts[i], &parts[i+1]
		p.ended, p.last, p.bytes = next.opening.Time, next.first-1, p.size
		if l := next.opening.Log; l != nil && l.PreviousSegment == p.name && l.PreviousBytes <= p.size {
			p.bytes = l.PreviousBytes
		}
	}
	return parts
}

// look reads the first line of a segment; whole says whether there is one. A first line that was changed is found by
// readers: the segment still holds a part of the log.
func look(disk Disk, name string, first uint64) (p part, whole bool, err error) {
	err = readFile(disk, name, func(r io.Reader, size int64) error {
		p = part{name: name, first: first, bytes: size, size: size}
		return Scan(io.LimitReader(r, 2*audit.MaxRecord), func(line []byte, _ int64) bool {
			if whole = line != nil; whole {
				p.opening, p.misfit = parseOpening(line), Misfit(name, line)
			}
			return false
		})
	})
	return p, whole, err
}

// parseOpening reads the first line of a segment: its number, its time, the hash of the record before, and what it says of the log. A field of it that cannot be read
// declares nothing, and one that is not known, or is spelled in other letters, neither, for the evidence as well: both must have the same segments, or nothing could be
// signed any more. Whether a start goes on from such a line is for Misfit to say. Of a line that is no record it returns nothing.
func parseOpening(line []byte) (e audit.Event) {
	h, ok := parseHead(line)
	if !ok || !json.Valid(line) {
		return audit.Event{}
	}
	e.Seq, e.Prev = h.seq, h.prev
	var at struct {
		Time time.Time `json:"time"`
	}
	_ = strictjson.UnmarshalCaseSensitivePreserveInts(line, &at) // which reads what it can
	e.Time = at.Time
	if h.opens() {
		var of struct {
			Log *audit.Log `json:"log"`
		}
		_ = strictjson.UnmarshalCaseSensitivePreserveInts(line, &of)
		e.Log = of.Log
	}
	return e
}
