package segment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Link is what the first line of a segment says of it and of other segments of its log.
type Link struct {
	Given    string   // the name that its writer gave the segment
	First    uint64   // number of its first record, from the name
	Size     int64    // of the file
	IsWhole  bool     // the first line is there, whatever it says
	Opens    bool     // it is a record of the number that is in the name
	Void     []string // segments in which no record counts, as it declares
	Counts   bool     // as Counts says
	Previous string   // the segment that it says it follows
	Bytes    int64    // how many bytes of that belong to the log, as it declares
	Torn     int64    // how many bytes follow these in the file, as it declares
	TornHash string   // their hash, as it declares
	Prev     string   // the hash of the record before, in its first record
	Misfit   error    // why its first line is no opening of a segment of its name, nil if it is one: see Misfit
	IsCopy   bool     // its first line names another file
}

// LinkOf is what a segment says, given its name, its size, and its first line without the newline.
func LinkOf(given string, size int64, line []byte) Link {
	l := linkOf(given, size, parseOpening(line), Misfit(given, line))
	l.IsWhole = true
	return l
}

func linkOf(given string, size int64, opening audit.Event, misfit error) Link {
	first, _ := ParseName(given)
	l := Link{Given: given, First: first, Size: size, Opens: opening.Seq == first, Prev: opening.Prev, Misfit: misfit}
	if g := opening.Log; g != nil {
		l.Void = g.Void
		l.Previous, l.Bytes, l.Torn, l.TornHash = g.PreviousSegment, g.PreviousBytes, int64(g.TornBytes), g.PreviousTornHash
		l.IsCopy = g.Segment != "" && g.Segment != given
	}
	return l
}

// Signed is the state of a log that a checkpoint was signed of.
type Signed struct {
	// Size is how many records it covers, 0 without a checkpoint.
	Size uint64
	// Fits says whether a chain of segments, by their names, holds the records that the checkpoint was signed of. It reads them, and is asked only
	// where several chains have as many records. Nil means that nothing can tell them apart.
	Fits func(names []string) (bool, error)
}

// Chained is the result of Chain.
type Chained struct {
	// Keep says for each segment whether the log goes on from it.
	Keep []bool
	// Sealed says that the last record under the checkpoint ended the log in order. Nothing behind it is of the log.
	Sealed bool
	// Behind says of a segment that is not kept that it continues the chain of hashes behind such an end, which needs no key.
	Behind []bool
	// Last is the last segment that is kept, -1 if there is none.
	Last int
	// Ending is where the log ends in it. What stands behind that was not written there, or is the remains of a crash, and is let go.
	Ending
}

// Chain says which segments the log goes on from that its last checkpoint was signed of, given the segments that begin with a whole line. An attacker
// who can write to the directory can add a well-formed segment that follows on nothing, on a segment in its middle, or on an end that was
// signed: it is left aside, so that the log goes on without it. If no chain of segments reaches the checkpoint, none is left aside: what contradicts
// the checkpoint is for the evidence to refuse. So are two segments that both go on behind it, unless it sealed the log. Signed segments count by their hashes. An
// unsigned one must open as a segment of the log does, and describe the segment before it correctly. From the first line of the last one on that does not continue the
// log, nothing is of it.
func Chain(links []Link, signed Signed, open func(i int) (io.ReadCloser, error)) (Chained, error) {
	j := &judge{links: links, signed: signed, open: open, after: map[int]int{}, known: map[int]Ending{}, hashes: map[hashed]string{}}
	c := Chained{Keep: make([]bool, len(links)), Behind: make([]bool, len(links))}
	for i, l := range links {
		c.Keep[i] = l.Counts
	}
	if err := j.chain(&c); err != nil {
		return Chained{}, err
	}
	return c, j.end(&c)
}

// judge is the state of one call of Chain.
type judge struct {
	links  []Link
	signed Signed
	open   func(i int) (io.ReadCloser, error)
	before []int       // what each one follows
	after  map[int]int // how many follow each one
	known  map[int]Ending
	copied int // of open intents, for those that follow the same one
	hashes map[hashed]string
	torn   int64 // how many bytes these are of
}

// hashed are the bytes of a segment from a place on.
type hashed struct {
	of   int
	from int64
}

func (j *judge) chain(c *Chained) error {
	if j.signed.Size == 0 {
		return nil
	}
	before, err := j.predecessors()
	if err != nil {
		return err
	}
	carriers, sealed, err := j.carriers(before)
	if err != nil || len(carriers) != 1 {
		return err
	}
	j.before = before
	for _, p := range before {
		j.after[p]++
	}
	carrier := carriers[0]
	clear(c.Keep)
	c.Sealed = sealed[carrier]
	for i := carrier; i >= 0; i = before[i] {
		c.Keep[i] = true
	}
	order := byNumber(j.links)
	isBehind, fits := make([]bool, len(j.links)), make([]bool, len(j.links)) // isBehind: it follows the carrier, or a segment that does, and is not signed. fits: so do it and all between
	children := make([]int, len(j.links))                                    // how many fit behind each
	for _, i := range order {
		p := before[i]
		isBehind[i] = p >= 0 && j.links[i].First > j.signed.Size && (p == carrier || isBehind[p])
		c.Behind[i] = isBehind[i] && c.Sealed
		if isBehind[i] && !c.Sealed && (p == carrier || fits[p]) && j.links[i].Misfit == nil {
			if fits[i], err = j.fits(i); err != nil {
				return err
			}
		}
		if fits[i] {
			children[p]++
		}
	}
	goesOn := make([]bool, len(j.links)) // a kept segment continues it
	slices.Reverse(order)
	for _, i := range order {
		if !fits[i] {
			continue
		}
		p := before[i]
		if !goesOn[i] && children[p] > 1 { // of several, one that holds what no writer leaves is not the log's
			m, err := j.measure(i)
			if err != nil {
				return err
			}
			if m.fault("", j.links[i].Size) != "" {
				children[p]--
				continue
			}
		}
		c.Keep[i], goesOn[p] = true, true
	}
	return nil
}

// end finds where the log ends. A segment without its first record is none of it.
func (j *judge) end(c *Chained) error {
	c.Last = -1
	for _, i := range slices.Backward(byNumber(j.links)) {
		if !c.Keep[i] {
			continue
		}
		m, err := j.measure(i)
		if err != nil {
			return err
		}
		if m.Bytes > 0 {
			c.Last, c.Ending = i, m
			return nil
		}
		c.Keep[i] = false
	}
	return nil
}

// predecessors are the segments that each one follows, -1 for none. An unsigned segment that claims more bytes of its predecessor than there are follows
// nothing; of a signed one, that is for the evidence to refuse.
func (j *judge) predecessors() ([]int, error) {
	at := map[string]int{}
	for i, l := range j.links {
		at[l.Given] = i
	}
	before := make([]int, len(j.links))
	for i, l := range j.links {
		before[i] = -1
		p, ok := at[l.Previous]
		if !ok || l.IsCopy || j.links[p].First >= l.First {
			continue
		}
		follows, isThere, err := j.follows(l, p)
		if err != nil {
			return nil, err
		}
		if follows && (isThere || l.First <= j.signed.Size) {
			before[i] = p
		}
	}
	return before, nil
}

// fits says whether an unsigned segment that opens as a segment of the log does describes its predecessor correctly: where its records end, and what follows them.
// If another segment declares this one void, it still fits if it holds more than its opening: that declaration is unsigned, and a segment that was given up with records
// in it cannot be told from one that an attacker wants to replace.
func (j *judge) fits(i int) (bool, error) {
	l := j.links[i]
	before, err := j.measure(j.before[i])
	if err != nil || l.Bytes > before.Bytes {
		return false, err
	}
	if j.after[j.before[i]] > 1 {
		if j.copied += len(before.open); j.copied > maxCopied {
			return false, nil
		}
	}
	if !l.Counts {
		if m, err := j.measure(i); err != nil || m.Seq <= l.First {
			return false, err
		}
	}
	return j.declares(i)
}

// measure returns the Ending of a segment, read once.
func (j *judge) measure(i int) (Ending, error) {
	if m, ok := j.known[i]; ok {
		return m, nil
	}
	l := j.links[i]
	err := j.read(i, func(r io.Reader) (err error) {
		j.known[i], err = measure(l.First, j.signed.Size, io.LimitReader(r, l.Size), j.opened(i))
		return err
	})
	return j.known[i], err
}

// read passes the contents of a segment to each, and closes it.
func (j *judge) read(i int, each func(io.Reader) error) error {
	r, err := j.open(i)
	if err == nil {
		err = errors.Join(each(r), r.Close())
	}
	if err != nil {
		return fmt.Errorf("read segment %s: %w", j.links[i].Given, err)
	}
	return nil
}

// maxCopied bounds how many open intents are kept for segments of which several follow the same one.
const maxCopied = 64 * MaxOpen

// opened are the intents that are open before an unsigned segment, for measure to change.
func (j *judge) opened(i int) map[uint64]bool {
	if j.before == nil || j.before[i] < 0 || j.links[i].First <= j.signed.Size {
		return map[uint64]bool{}
	}
	p := j.before[i]
	if j.after[p] > 1 {
		return maps.Clone(j.known[p].open)
	}
	return j.known[p].open
}

// byNumber are the positions of links, in the order of their numbers, and of their names where these are the same.
func byNumber(links []Link) []int {
	order := make([]int, len(links))
	for i := range order {
		order[i] = i
	}
	SortByNumber(order, func(i int) (uint64, string) { return links[i].First, links[i].Given })
	return order
}

// carriers are the segments that hold the last record under the checkpoint. Where there are several, those that the checkpoint was signed of. A copy under another name is
// none.
func (j *judge) carriers(before []int) (found []int, sealed map[int]bool, err error) {
	links, signed := j.links, j.signed
	ends := make([]bool, len(links)) // it ends before that record: the next segment begins before, and nothing stands behind where that one says
	for i, l := range links {
		if p := before[i]; p >= 0 && l.First <= signed.Size && l.Bytes == links[p].Size {
			ends[p] = true
		}
	}
	sealed = map[int]bool{}
	for i, l := range links {
		if ends[i] || l.IsCopy || l.First > signed.Size {
			continue
		}
		reaches, seals, err := j.reaches(i)
		if err != nil {
			return nil, nil, err
		}
		if reaches {
			found, sealed[i] = append(found, i), seals
		}
	}
	if len(found) < 2 || signed.Fits == nil {
		return found, sealed, nil
	}
	var fitting []int
	for _, f := range found {
		var names []string
		for i := f; i >= 0; i = before[i] {
			names = append(names, links[i].Given)
		}
		slices.Reverse(names)
		fits, err := signed.Fits(names)
		if err != nil {
			return nil, nil, err
		}
		if fits {
			fitting = append(fitting, f)
		}
	}
	return fitting, sealed, nil
}

// follows says whether the record that ends where a segment says that the log goes on from segment p, or before if less is there, is the one that its first record
// names.
func (j *judge) follows(l Link, p int) (follows, isThere bool, err error) {
	if l.Bytes <= 0 || l.Bytes > mostBytes {
		return false, false, nil
	}
	var tail []byte
	err = j.read(p, func(r io.Reader) (err error) {
		tail, isThere, err = readUpTo(r, l.Bytes)
		return err
	})
	line, whole := bytes.CutSuffix(tail, []byte("\n"))
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	seq, _, ok := ParseLine(line)
	return whole && ok && seq == l.First-1 && encodeLeaf(Leaf(line)) == l.Prev, isThere, err
}

// declares says whether a segment describes correctly what follows the log in its predecessor, as far as that can be checked: a machine that failed may have lost
// some of it since. Writers always give the hash, unless there are more than MaxTorn bytes. What goes beyond MaxUnsignedTorn is not read, and fits nothing.
func (j *judge) declares(i int) (bool, error) {
	l, p := j.links[i], j.before[i]
	behind := j.links[p].Size - l.Bytes
	switch {
	case behind > l.Torn || l.Torn > 0 && l.Torn <= MaxTorn && l.TornHash == "":
		return false, nil
	case behind < l.Torn || behind == 0 || behind > MaxTorn:
		return true, nil
	}
	h := hashed{p, l.Bytes}
	if _, ok := j.hashes[h]; !ok {
		if j.torn+behind > MaxUnsignedTorn {
			return false, nil
		}
		err := j.read(p, func(r io.Reader) (err error) {
			j.hashes[h], err = hashBehind(r, l.Bytes, behind)
			return err
		})
		if err != nil {
			return false, err
		}
		j.torn += behind
	}
	return j.hashes[h] == l.TornHash, nil
}

// hashBehind is the hash of the n bytes of a segment that follow the first ones, in the form that openings have.
func hashBehind(r io.Reader, first, n int64) (string, error) {
	if err := discard(r, first); err != nil {
		return "", err
	}
	h := sha256.New()
	if _, err := io.CopyN(h, r, n); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// discard passes over the first n bytes, or as many as there are.
func discard(r io.Reader, n int64) (err error) {
	if s, ok := r.(io.Seeker); ok {
		_, err = s.Seek(n, io.SeekStart)
	} else if _, err = io.CopyN(io.Discard, r, n); errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// mostBytes is larger than any segment, and small enough to seek to.
const mostBytes = 1 << 50

// readUpTo returns the end of the first n bytes of r: as much as holds a record. isThere says whether there are so many.
func readUpTo(r io.Reader, n int64) (tail []byte, isThere bool, err error) {
	skip := max(0, n-2*audit.MaxRecord)
	if err := discard(r, skip); err != nil {
		return nil, false, err
	}
	tail, err = io.ReadAll(io.LimitReader(r, n-skip))
	return tail, int64(len(tail)) == n-skip, err
}

// reaches says whether a segment holds the last record under the checkpoint, and whether that one ended the log in order.
func (j *judge) reaches(i int) (reaches, seals bool, err error) {
	last := j.links[i].First - 1
	err = j.read(i, func(r io.Reader) error {
		return Scan(r, func(line []byte, _ int64) bool {
			at, _, ok := ParseLine(line)
			if !ok || at != last+1 {
				return false
			}
			if last = at; last == j.signed.Size {
				reaches, seals = true, sealsLog(line)
			}
			return !reaches
		})
	})
	return reaches, seals, err
}

// sealsLog says whether a record is the last one of a process that ended in order.
func sealsLog(line []byte) bool {
	e, err := audit.Parse(line)
	return err == nil && e.Type == audit.TypeLog && e.Stage == audit.StageLogClose && e.Log != nil && e.Log.Cause == audit.CauseStop
}
