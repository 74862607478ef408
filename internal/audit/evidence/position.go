package evidence

import (
	"errors"
	"slices"
)

// Position is the end of what a verification found signed: the tree of the records up to there.
type Position struct {
	tree  span
	first uint64 // the record that the segment begins with which holds the last one
	rank  int    // of the newest key that signed any of it: those before it had been replaced
}

// Last is the number of the last record, 0 of the beginning.
func (p Position) Last() uint64 { return p.tree.end }

// errFromStart means that what follows on VerifyOptions.After is not there.
var errFromStart = errors.New("all is to be verified")

// goOn leaves out what was verified, if what follows on it is there.
func (v *verification) goOn() error {
	after := v.o.After
	isBehind := func(s Segment) bool { return s.First >= after.first }
	if after.Last() == 0 || v.o.Again {
		return nil
	}
	if v.first.end > after.Last() || !slices.ContainsFunc(v.segments, func(s Segment) bool { return isBehind(s) && s.First <= after.Last()+1 }) {
		return errFromStart
	}
	v.after = after.tree.clone()
	v.segments = slices.DeleteFunc(v.segments, func(s Segment) bool { return !isBehind(s) })
	return nil
}
