package segment

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Link is what a segment says of the one before it.
type Link struct {
	Given    string
	First    uint64
	Size     int64  // of the file
	Counts   bool   // as Counts says
	Previous string // the segment that it says it follows
	Bytes    int64  // how many bytes of that are of the log, as it says
	Torn     int64  // how many bytes follow these in the file, as it says
	TornHash string // their hash, as it says
	Prev     string // the hash of the record before, in its first record
	Misfit   bool   // its first line is no opening of a segment of its name, as Misfit says
}

// Signed is the state of a log that a checkpoint was signed of.
type Signed struct {
	// Size is how many records it covers, 0 without a checkpoint.
	Size uint64
	// Fits says whether a chain of segments, by their names, holds the records that the checkpoint was signed of. It reads them, and is asked only
	// where several chains have as many records. Nil means that nothing can tell them apart.
	Fits func(names []string) (bool, error)
}

// Chained is what Chain finds.
type Chained struct {
	// Keep says for each segment whether the log goes on from it.
	Keep []bool
	// Sealed says that the last record under the checkpoint ended the log in order. Nothing behind it is of the log.
	Sealed bool
	// Behind says of a segment that is not kept that it continues the chain of hashes behind such an end, as everybody can make one do.
	Behind []bool
}

// Chain says which segments the log goes on from that its last checkpoint was signed of, given the segments that begin with a whole line. Whoever can
// write to the directory can put a well-formed segment there that follows on nothing, on a segment in its middle, or on an end that was
// signed: it is left aside, so that the log goes on without it. If no chain of segments reaches the checkpoint, none is left aside: what contradicts
// the checkpoint is for the evidence to refuse. So are two segments that both go on behind it, unless it sealed the log. Signed segments count by their hashes. An
// unsigned one must open as a segment of the log does, describe the segment before it correctly, and hold nothing but records in their order and the remains of a crash.
func Chain(links []Link, signed Signed, open func(i int) (io.ReadCloser, error)) (c Chained, err error) {
	asCounted := Chained{Keep: make([]bool, len(links)), Behind: make([]bool, len(links))}
	for i, l := range links {
		asCounted.Keep[i] = l.Counts
	}
	if signed.Size == 0 {
		return asCounted, nil
	}
	before, err := predecessors(links, signed.Size, open)
	if err != nil {
		return Chained{}, err
	}
	carriers, sealed, err := carriers(links, before, signed, open)
	if err != nil || len(carriers) != 1 {
		return asCounted, err
	}
	carrier := carriers[0]
	c = Chained{Keep: make([]bool, len(links)), Behind: make([]bool, len(links)), Sealed: sealed[carrier]}
	for i := carrier; i >= 0; i = before[i] {
		c.Keep[i] = true
	}
	u := unsigned{links: links, before: before, open: open, known: map[int]measured{}}
	order := byNumber(links)
	isBehind, fits := make([]bool, len(links)), make([]bool, len(links)) // isBehind: it follows the carrier, or a segment that does, and is not signed. fits: so do it and all between
	for _, i := range order {
		p := before[i]
		isBehind[i] = p >= 0 && links[i].First > signed.Size && (p == carrier || isBehind[p])
		c.Behind[i] = isBehind[i] && c.Sealed
		if isBehind[i] && !c.Sealed && (p == carrier || fits[p]) {
			if fits[i], err = u.fits(i, p == carrier); err != nil {
				return Chained{}, err
			}
		}
	}
	goesOn := make([]bool, len(links)) // a segment that is kept follows on it
	slices.Reverse(order)
	for _, i := range order {
		keep := fits[i]
		if keep && !goesOn[i] {
			if keep, err = u.ends(i); err != nil {
				return Chained{}, err
			}
		}
		if keep {
			c.Keep[i], goesOn[before[i]] = true, true
		}
	}
	return c, nil
}

// predecessors are the segments that each one follows, -1 for none. An unsigned segment that claims more bytes of its predecessor than there are follows
// nothing; of a signed one, that is for the evidence to refuse.
func predecessors(links []Link, signed uint64, open func(i int) (io.ReadCloser, error)) ([]int, error) {
	at := map[string]int{}
	for i, l := range links {
		at[l.Given] = i
	}
	before := make([]int, len(links))
	for i, l := range links {
		before[i] = -1
		p, ok := at[l.Previous]
		if !ok || links[p].First >= l.First {
			continue
		}
		follows, isThere, err := l.follows(func() (io.ReadCloser, error) { return open(p) })
		if err != nil {
			return nil, err
		}
		if follows && (isThere || l.First <= signed) {
			before[i] = p
		}
	}
	return before, nil
}

// unsigned judges the segments after the last checkpoint.
type unsigned struct {
	links  []Link
	before []int
	open   func(i int) (io.ReadCloser, error)
	known  map[int]measured
}

// fits says whether a segment opens as a segment of the log does and describes its predecessor correctly: where its records end, and what follows them. The records of
// the carrier are for the evidence to check. If another segment declares this one void, it still fits if it holds more than its opening: that declaration is unsigned,
// and a segment that was given up with records in it cannot be told from one that an attacker wants to replace.
func (u unsigned) fits(i int, isBehindCarrier bool) (bool, error) {
	l, p := u.links[i], u.before[i]
	if l.Misfit {
		return false, nil
	}
	ok, err := l.declares(u.links[p].Size-l.Bytes, func() (io.ReadCloser, error) { return u.open(p) })
	if err == nil && ok && !isBehindCarrier {
		var m measured
		m, err = u.measure(p)
		ok = l.Bytes <= m.good.bytes
	}
	if err == nil && ok && !l.Counts {
		var m measured
		m, err = u.measure(i)
		ok = m.good.seq > l.First
	}
	return ok && err == nil, err
}

// ends says whether a segment that nothing follows ends as its writer, or a crash, leaves it.
func (u unsigned) ends(i int) (bool, error) {
	m, err := u.measure(i)
	return m.good.bytes > 0 && m.isLeftByCrash(u.links[i].Size), err
}

func (u unsigned) measure(i int) (measured, error) {
	if m, ok := u.known[i]; ok {
		return m, nil
	}
	r, err := u.open(i)
	if err != nil {
		return measured{}, fmt.Errorf("read segment %s: %w", u.links[i].Given, err)
	}
	m, err := measure(u.links[i].First, u.links[i].Size, io.LimitReader(r, u.links[i].Size), false)
	if err = errors.Join(err, r.Close()); err != nil {
		return measured{}, fmt.Errorf("read segment %s: %w", u.links[i].Given, err)
	}
	u.known[i] = m
	return m, nil
}

// byNumber are the positions of links, in the order of their numbers.
func byNumber(links []Link) []int {
	order := make([]int, len(links))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(links[a].First, links[b].First) })
	return order
}

// carriers are the segments that hold the last record under the checkpoint. Where there are several, those that the checkpoint was signed of.
func carriers(links []Link, before []int, signed Signed, open func(i int) (io.ReadCloser, error)) (found []int, sealed map[int]bool, err error) {
	ends := make([]bool, len(links)) // it ends before that record: the next segment begins before, and nothing stands behind where that one says
	for i, l := range links {
		if p := before[i]; p >= 0 && l.First <= signed.Size && l.Bytes == links[p].Size {
			ends[p] = true
		}
	}
	sealed = map[int]bool{}
	for i, l := range links {
		if ends[i] || l.First > signed.Size {
			continue
		}
		reaches, seals, err := l.reaches(signed.Size, func() (io.ReadCloser, error) { return open(i) })
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

// follows says whether the record that ends where the segment says the log goes on, or before if less is there, is the one that its first record names.
func (l Link) follows(open func() (io.ReadCloser, error)) (follows, isThere bool, err error) {
	if l.Bytes <= 0 || l.Bytes > mostBytes {
		return false, false, nil
	}
	r, err := open()
	if err != nil {
		return false, false, fmt.Errorf("read segment %s: %w", l.Previous, err)
	}
	tail, isThere, err := readUpTo(r, l.Bytes)
	if err = errors.Join(err, r.Close()); err != nil {
		return false, false, fmt.Errorf("read segment %s: %w", l.Previous, err)
	}
	line, whole := bytes.CutSuffix(tail, []byte("\n"))
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	seq, _, ok := ParseLine(line)
	return whole && ok && seq == l.First-1 && encodeLeaf(Leaf(line)) == l.Prev, isThere, nil
}

// declares says whether the segment describes correctly what follows the log in its predecessor, as far as that can be checked: a machine that failed may have lost
// some of it since. Writers always give the hash, unless there are more than MaxTorn bytes.
func (l Link) declares(behind int64, open func() (io.ReadCloser, error)) (bool, error) {
	switch {
	case behind > l.Torn || l.Torn > 0 && l.Torn <= MaxTorn && l.TornHash == "":
		return false, nil
	case behind < l.Torn || behind == 0 || behind > MaxTorn:
		return true, nil
	}
	r, err := open()
	if err != nil {
		return false, fmt.Errorf("read segment %s: %w", l.Previous, err)
	}
	hash, err := hashBehind(r, l.Bytes, behind)
	if err = errors.Join(err, r.Close()); err != nil {
		return false, fmt.Errorf("read what stands behind the end of segment %s: %w", l.Previous, err)
	}
	return hash == l.TornHash, nil
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

// reaches says whether a segment holds a record, and whether that one ended the log in order.
func (l Link) reaches(seq uint64, open func() (io.ReadCloser, error)) (reaches, seals bool, err error) {
	r, err := open()
	if err != nil {
		return false, false, fmt.Errorf("read segment %s: %w", l.Given, err)
	}
	last := l.First - 1
	err = scan(r, func(line []byte, _ int64) bool {
		at, _, ok := ParseLine(line)
		if !ok || at != last+1 {
			return false
		}
		if last = at; last == seq {
			reaches, seals = true, sealsLog(line)
		}
		return !reaches
	})
	if err = errors.Join(err, r.Close()); err != nil {
		return false, false, fmt.Errorf("read segment %s: %w", l.Given, err)
	}
	return reaches, seals, nil
}

// sealsLog says whether a record is the last one of a process that ended in order.
func sealsLog(line []byte) bool {
	e, err := audit.Parse(line)
	return err == nil && e.Type == audit.TypeLog && e.Stage == audit.StageLogClose && e.Log != nil && e.Log.Cause == audit.CauseStop
}

// ClosesSegment says whether a record is the last one of its segment: nothing that stands behind it is of the log, whatever it is.
func ClosesSegment(line []byte) bool {
	h, ok := parseHead(line)
	return ok && h.kind == string(audit.TypeLog) && h.stage == string(audit.StageLogClose)
}
