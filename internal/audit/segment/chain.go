package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Link is what a segment says of the one before it.
type Link struct {
	Given    string
	First    uint64
	Previous string // the segment that it says it follows
	Bytes    int64  // how many bytes of that are of the log, as it says
	Prev     string // the hash of the record before, in its first record
}

// Chain says which segments the log goes on from that its last checkpoint was signed of, given what counts in its directory and how many
// records the checkpoint covers. Whoever can write to the directory can put a well-formed segment there that follows on nothing: it is left aside, so that
// the log goes on without it. If no chain of segments reaches the checkpoint, or several do, none is left aside: what contradicts the
// checkpoint is for the evidence to refuse.
func Chain(links []Link, covered uint64, open func(i int) (io.ReadCloser, error)) (keep []bool, err error) {
	all := make([]bool, len(links))
	for i := range all {
		all[i] = true
	}
	if covered == 0 {
		return all, nil
	}
	at := map[string]int{}
	for i, l := range links {
		at[l.Given] = i
	}
	before := make([]int, len(links)) // the segment that one follows, -1 for none
	isFollowed := make([]bool, len(links))
	for i, l := range links {
		before[i] = -1
		p, ok := at[l.Previous]
		if !ok || links[p].First >= l.First {
			continue
		}
		follows, err := l.follows(func() (io.ReadCloser, error) { return open(p) })
		if err != nil {
			return nil, err
		}
		if follows {
			before[i], isFollowed[p] = p, true
		}
	}
	for tail, l := range links {
		if isFollowed[tail] {
			continue
		}
		last, err := lastOf(l, covered, func() (io.ReadCloser, error) { return open(tail) })
		if err != nil {
			return nil, err
		}
		chain := make([]bool, len(links))
		head := tail
		for i := tail; i >= 0; i = before[i] {
			chain[i], head = true, i
		}
		if last < covered || links[head].First > covered {
			continue
		}
		if keep != nil {
			return all, nil
		}
		keep = chain
	}
	if keep == nil {
		return all, nil
	}
	return keep, nil
}

// follows says whether the record that ends where the segment says the log goes on is the one that its first record names.
func (l Link) follows(open func() (io.ReadCloser, error)) (bool, error) {
	if l.Bytes <= 0 {
		return false, nil
	}
	r, err := open()
	if err != nil {
		return false, fmt.Errorf("read segment %s: %w", l.Previous, err)
	}
	tail, err := readUpTo(r, l.Bytes)
	if err = errors.Join(err, r.Close()); err != nil {
		return false, fmt.Errorf("read segment %s: %w", l.Previous, err)
	}
	line, whole := bytes.CutSuffix(tail, []byte("\n"))
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	seq, _, ok := ParseLine(line)
	return whole && ok && seq == l.First-1 && encodeLeaf(Leaf(line)) == l.Prev, nil
}

// readUpTo returns the end of the first n bytes of r: as much as holds a record.
func readUpTo(r io.Reader, n int64) ([]byte, error) {
	skip := max(0, n-2*audit.MaxRecord)
	var err error
	if s, ok := r.(io.Seeker); ok {
		_, err = s.Seek(skip, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, r, skip)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, n-skip))
}

// lastOf returns the number of the last record in a segment, or any from covered on.
func lastOf(l Link, covered uint64, open func() (io.ReadCloser, error)) (uint64, error) {
	last := l.First - 1
	if last >= covered {
		return last, nil
	}
	r, err := open()
	if err != nil {
		return 0, fmt.Errorf("read segment %s: %w", l.Given, err)
	}
	err = scan(r, func(line []byte, _ int64) bool {
		seq, _, ok := ParseLine(line)
		if ok = ok && seq == last+1; ok {
			last = seq
		}
		return ok && last < covered
	})
	if err = errors.Join(err, r.Close()); err != nil {
		return 0, fmt.Errorf("read segment %s: %w", l.Given, err)
	}
	return last, nil
}

// chained tells the parts that the log goes on from from the others.
func chained(disk Disk, parts []part, covered uint64) (kept, aside []part, err error) {
	links := make([]Link, 0, len(parts))
	for _, p := range parts {
		l := Link{Given: p.name, First: p.first, Prev: p.opening.Prev}
		if g := p.opening.Log; g != nil {
			l.Previous, l.Bytes = g.PreviousSegment, g.PreviousBytes
		}
		links = append(links, l)
	}
	keep, err := Chain(links, covered, func(i int) (io.ReadCloser, error) {
		r, _, err := disk.Read(parts[i].name)
		return r, err
	})
	if err != nil {
		return nil, nil, err
	}
	for i, p := range parts {
		if keep[i] {
			kept = append(kept, p)
		} else {
			aside = append(aside, p)
		}
	}
	return kept, aside, nil
}
