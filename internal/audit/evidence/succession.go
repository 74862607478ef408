package evidence

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// signerSet holds the ids of the log's keys that signed a checkpoint: four bytes each, in rising order.
type signerSet string

func (s signerSet) ids() (list []uint32) {
	for at := 0; at+4 <= len(s); at += 4 {
		list = append(list, binary.BigEndian.Uint32([]byte(s[at:at+4])))
	}
	return list
}

func setOf(ids []uint32) signerSet {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	out := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		out = binary.BigEndian.AppendUint32(out, id)
	}
	return signerSet(out)
}

func (s signerSet) has(id uint32) bool           { return slices.Contains(s.ids(), id) }
func (s signerSet) with(id uint32) signerSet     { return setOf(append(s.ids(), id)) }
func (s signerSet) and(o signerSet) signerSet    { return setOf(append(s.ids(), o.ids()...)) }
func (s signerSet) shared(o signerSet) signerSet { return s.filter(o.has) }
func (s signerSet) less(o signerSet) signerSet {
	return s.filter(func(id uint32) bool { return !o.has(id) })
}

func (s signerSet) filter(keep func(uint32) bool) signerSet {
	return setOf(slices.DeleteFunc(s.ids(), func(id uint32) bool { return !keep(id) }))
}

// named names the keys as verifier keys do.
func (s signerSet) named(origin string) string {
	var names []string
	for _, id := range s.ids() {
		names = append(names, fmt.Sprintf("%s+%08x", origin, id))
	}
	return strings.Join(names, ", ")
}

// succession follows the keys of a log through its checkpoints, by size. In a rotation the old key and the new one sign together, and then the new
// one alone. From then on a checkpoint that the old key alone signed is one of somebody else who has it.
type succession struct {
	current signerSet // one of these must sign
	since   uint64    // the size of the first checkpoint that they signed without the others
	seen    signerSet // keys that have signed
}

// add looks at all checkpoints of one size. The file of a *Fault and its line are those of the checkpoint that a replaced key signed. A gap is said of keys that
// take over without having signed together with the one before: the checkpoint that shows it may be missing.
func (s *succession) add(group []expected) (gap string, err error) {
	if !slices.ContainsFunc(group, func(e expected) bool { return e.by != s.current }) { // nearly always
		return "", nil
	}
	all := signerSet("")
	for _, e := range group {
		all = all.and(e.by)
	}
	if all == "" {
		return "", nil
	}
	if s.seen == "" {
		s.current, s.since, s.seen = all, group[0].Size, all
		return "", nil
	}
	linked := s.current
	for before := signerSet(""); before != linked; { // through checkpoints that two keys signed
		before = linked
		for _, e := range group {
			if e.by.shared(linked) != "" {
				linked = linked.and(e.by)
			}
		}
	}
	for _, e := range group {
		switch {
		case e.by == "" || e.by.shared(linked) != "":
		case e.by.shared(s.seen) != "":
			return "", s.replaced(e)
		default:
			gap = fmt.Sprintf("%s signs from %d records on, and no checkpoint shows that %s handed over to it: both sign together in a rotation",
				e.by.named(e.Origin), e.Size, s.current.named(e.Origin))
			linked = linked.and(e.by)
		}
	}
	next := linked.shared(all).less(s.seen)
	if next == "" {
		next = s.current
		for _, e := range group {
			if e.by == "" {
				continue
			}
			if next = next.shared(e.by); next == "" {
				return "", s.replaced(e)
			}
		}
	}
	if next != s.current {
		s.since = group[0].Size
	}
	s.current, s.seen = next, s.seen.and(all)
	return gap, nil
}

// replaced is the fault of a checkpoint that only keys signed which others have replaced.
func (s *succession) replaced(e expected) error {
	return &Fault{e.file, e.line, e.Size, fmt.Sprintf("only %s signed the checkpoint, which %s replaced at %d records: somebody has the old key, or the configuration went back to it",
		e.by.named(e.Origin), s.current.named(e.Origin), s.since)}
}
