package evidence

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// uncompared are checkpoints from elsewhere of pruned records of which no root is known. A witness among the keys vouches for those that it cosigned, if it
// cosigned a later one that fits the log: it saw that the log of the first goes on in the log of the second.
type uncompared struct {
	count       int
	last        uint64            // the size of the last
	unwitnessed int               // how many no witness cosigned
	lastOfThese uint64            // the size of the last of these
	witnessed   map[string]uint64 // names of witnesses, one a line, to the size of the last that they cosigned
}

func (u *uncompared) add(e expected) {
	u.count, u.last = u.count+1, e.Size
	if len(e.Witnesses) == 0 {
		u.unwitnessed, u.lastOfThese = u.unwitnessed+1, e.Size
		return
	}
	var names []string
	for _, w := range e.Witnesses {
		names = append(names, w.Name)
	}
	slices.Sort(names)
	if u.witnessed == nil {
		u.witnessed = map[string]uint64{}
	}
	u.witnessed[strings.Join(slices.Compact(names), "\n")] = e.Size
}

// doubts say why the log may be another one than the one that they were signed of. by is the size of the last checkpoint that each witness cosigned and that
// fits the log.
func (u *uncompared) doubts(by map[string]uint64) (texts []string) {
	const unlinked = "nothing shows that this log continues that one, since its records were pruned"
	if u.unwitnessed > 0 {
		texts = append(texts, fmt.Sprintf("%d checkpoints from elsewhere, the last of them of %d records, were cosigned by no witness among the keys: %s", u.unwitnessed, u.lastOfThese, unlinked))
	}
	for _, names := range slices.Sorted(maps.Keys(u.witnessed)) {
		size, all := u.witnessed[names], strings.Split(names, "\n")
		if !slices.ContainsFunc(all, func(name string) bool { return by[name] > size }) {
			texts = append(texts, fmt.Sprintf("%s cosigned a log of %d records, and no later checkpoint: %s", strings.Join(all, " and "), size, unlinked))
		}
	}
	return texts
}

// before compares a checkpoint of pruned records with what is known of them.
func (v *verification) before(e expected) error {
	tree, isKnown := v.first.prefix(e.Size)
	other := v.lastBefore
	v.lastBefore = e
	switch {
	case isKnown && tree.root() != e.Root:
		return &Fault{v.start, 0, e.Size, fmt.Sprintf("it is not of the log of which the checkpoint in %s line %d was signed", e.file, e.line)}
	case other.file != "" && other.Size == e.Size && other.Root != e.Root:
		return &Fault{e.file, e.line, e.Size, fmt.Sprintf("it and the checkpoint in %s line %d were signed of two logs of %d records", other.file, other.line, e.Size)}
	case !isKnown && e.file != v.own:
		v.report.uncompared.add(e)
	}
	return nil
}

// held looks for a checkpoint that holds records which the tree of the pruned ones covers already. A whole log has one of its own.
func (v *verification) held(first uint64, isPartial bool) error {
	own, all := uint64(0), uint64(0)
	for _, e := range v.expect {
		all = max(all, e.Size)
		if !e.isOutside {
			own = max(own, e.Size)
		}
	}
	if first == 0 || own > 0 && !isPartial && isUnheld(first, v.first, own) {
		v.isUnheld = first > 0
		return &Fault{v.start, 0, first, unheld(first, v.first, own)}
	}
	if isUnheld(first, v.first, all) {
		v.report.incomplete("records %d to %d were about to be pruned, and no checkpoint of more is here to hold them", first, v.first.end)
	}
	return nil
}
