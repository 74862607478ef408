package segment

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// part is a segment.
type part struct {
	name    string
	first   uint64
	last    uint64    // of those that are closed, 0 if not known
	bytes   int64     // how much of it is of the log
	size    int64     // of the file, with what stands behind the log
	held    int64     // how much of the disk its part of the log takes
	refused int64     // how much of it refusals take
	ended   time.Time // when the next one was begun
	opening audit.Event
}

// opens says whether the first line is a record of the number in the name.
func (p *part) opens() bool { return p.opening.Seq == p.first }

// survey lists the segments that hold records, in order, and the names of those that hold none: which ones no segment has named yet, and which
// ones one has. Of the last segment, everything is taken to be of the log.
func survey(disk Disk) (parts []part, void, named []string, err error) {
	names, err := disk.Names()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("list segments: %w", err)
	}
	var looked []part
	var claims []Claim
	declared := map[string]bool{}
	for _, name := range names {
		first, ok := ParseName(name)
		if !ok {
			continue
		}
		p, whole, err := look(disk, name, first)
		if err != nil {
			return nil, nil, nil, err
		}
		c := Claim{Given: name, First: first, IsWhole: whole, Opens: p.opens()}
		if l := p.opening.Log; l != nil {
			c.Void, c.Previous = l.Void, l.PreviousSegment
		}
		looked, claims = append(looked, p), append(claims, c)
	}
	counts := Counts(claims)
	for i, c := range claims {
		for _, v := range c.Void {
			declared[v] = declared[v] || counts[i] && v != c.Given
		}
	}
	for i, p := range looked {
		switch {
		case counts[i]:
			parts = append(parts, p)
		case declared[p.name]:
			named = append(named, p.name)
		default:
			void = append(void, p.name)
		}
	}
	SortByNumber(parts, func(p part) (uint64, string) { return p.first, p.name })
	slices.Sort(void)
	return settle(parts), void, named, nil
}

// settle says of each part but the last where it ends.
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

// look reads the first line of a segment; whole says whether there is one. A first line that is not the one that was written is the
// reader's to find: the segment holds a part of the log all the same.
func look(disk Disk, name string, first uint64) (p part, whole bool, err error) {
	r, size, err := disk.Read(name)
	if err != nil {
		return part{}, false, fmt.Errorf("read segment %s: %w", name, err)
	}
	p = part{name: name, first: first, bytes: size, size: size}
	err = scan(io.LimitReader(r, 2*audit.MaxRecord), func(line []byte, _ int64) bool {
		whole = true
		if e, err := audit.Parse(line); err == nil {
			p.opening = e
		}
		return false
	})
	if err := errors.Join(err, r.Close()); err != nil {
		return part{}, false, fmt.Errorf("read segment %s: %w", name, err)
	}
	return p, whole, nil
}
