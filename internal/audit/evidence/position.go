package evidence

import "slices"

// Position is the end of what a verification found signed: the tree of the records up to there.
type Position struct {
	tree  span
	first uint64 // the record that the segment begins with which holds the last one
}

// Last is the number of the last record, 0 of the beginning.
func (p Position) Last() uint64 { return p.tree.end }

// goOn leaves out what was verified, if what follows on it is there.
func (v *verification) goOn() {
	after := v.o.After
	v.after = span{}
	isBehind := func(s Segment) bool { return s.First >= after.first }
	if v.o.Dir == "" || after.Last() == 0 || v.first.end > after.Last() || !slices.ContainsFunc(v.segments, func(s Segment) bool { return isBehind(s) && s.First <= after.Last()+1 }) {
		return
	}
	v.after = after.tree.clone()
	v.segments = slices.DeleteFunc(v.segments, func(s Segment) bool { return !isBehind(s) })
}
