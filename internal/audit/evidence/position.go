package evidence

import (
	"errors"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// Position is the last signed record that a verification reached, with the tree of the records up to there.
type Position struct {
	tree  leafRange
	first uint64 // the record that the segment begins with which holds the last one
	rank  int    // of the newest key that signed any of it: those before it had been replaced
}

// Last is the number of the last record, 0 of the beginning.
func (p Position) Last() uint64 { return p.tree.end }

// errFromStart means that the records behind VerifyOptions.After cannot be verified by themselves.
var errFromStart = errors.New("the whole log must be verified")

// goOn leaves out the segments that were verified before, if the next record, or the segment that it would be in, is there.
func (v *verification) goOn() error {
	after := v.o.After
	isBehind := func(s segment.Entry) bool { return s.First >= after.first }
	if after.Last() == 0 || v.o.Again {
		return nil
	}
	if v.first.end > after.Last() || !slices.ContainsFunc(v.segments, func(s segment.Entry) bool { return isBehind(s) && s.First <= after.Last()+1 }) {
		return errFromStart
	}
	v.after = after.tree.clone()
	v.segments = slices.DeleteFunc(v.segments, func(s segment.Entry) bool { return !isBehind(s) })
	return nil
}

// held are the leaf hashes of consecutive records.
type held struct {
	first  uint64
	leaves []tlog.Hash
}

func (h *held) add(r *Record) {
	if h.first+uint64(len(h.leaves)) != r.Seq {
		h.first, h.leaves = r.Seq, nil
	}
	h.leaves = append(h.leaves, r.Leaf)
}

// Holds says whether the record of a number had this hash when it was verified. Only what VerifyOptions.Hold kept is known.
func (r *Report) Holds(seq uint64, leaf [32]byte) bool {
	h := &r.held
	return seq >= h.first && seq-h.first < uint64(len(h.leaves)) && h.leaves[seq-h.first] == leaf
}
