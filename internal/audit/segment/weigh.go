package segment

import (
	"cmp"
	"slices"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// weighRecords finds how much of each segment refusals take, and records that no checkpoint covered when a start took them over, of those behind covered this
// one. Records of calls that were admitted are told by their beginning.
func (f *Found) weighRecords(covered uint64) error {
	unsigned := f.takenOver(covered)
	for i := range f.parts {
		p := &f.parts[i]
		seq := p.first
		err := p.lines(f.disk, func(line []byte, _ int64) bool {
			n, isAdded := int64(len(line))+1, isWithin(unsigned, seq)
			seq++
			if isAdded {
				p.added += n
				return true
			}
			h, ok := parseHead(line)
			if ok && h.stage == string(audit.StageOrphaned) && isWithin(unsigned, h.intentSeq) {
				p.echoed += n
				return true
			}
			if !ok || h.intentSeq != 0 || h.kind == string(audit.TypeLog) || h.stage == string(audit.StageRequestReceived) {
				return true
			}
			if e, err := audit.Parse(line); err == nil && e.IsRefusal() {
				p.refused = p.refused.plus(taken{n, n})
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// numbers is a range of record numbers, both ends included.
type numbers struct{ first, last uint64 }

// isWithin says whether a record is in one of ranges that do not overlap, sorted from the last to the first.
func isWithin(all []numbers, seq uint64) bool {
	i, _ := slices.BinarySearchFunc(all, seq, func(n numbers, seq uint64) int { return cmp.Compare(seq, n.first) })
	return i < len(all) && seq <= all[i].last
}

// takenOver are the records that no checkpoint covered when a start took them over, the last ones first: those behind covered, and those that the log itself
// names. An opening that stands among them may be an attacker's, so what it says does not count.
func (f *Found) takenOver(covered uint64) (all []numbers) {
	if covered < f.Last {
		all = append(all, numbers{covered + 1, f.Last})
	}
	for _, p := range slices.Backward(f.parts) {
		if g := p.opening.Log; p.opens() && g != nil && g.Unsigned > 0 && g.Unsigned < p.first && !isWithin(all, p.first) {
			all = append(all, numbers{p.first - g.Unsigned, p.first - 1})
		}
	}
	return all
}
