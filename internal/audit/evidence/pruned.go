package evidence

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// uncompared are checkpoints from elsewhere of pruned records of which no root is known. A witness among the keys vouches for those that it cosigned, if it
// cosigned a larger one later that fits the log: it saw that the log of the first goes on in the log of the second.
type uncompared struct {
	count       int
	last        uint64               // the size of the last
	unwitnessed int                  // how many no witness cosigned
	lastOfThese uint64               // the size of the last of these
	witnessed   map[string]byWitness // names of witnesses, one a line, to the last that they cosigned
}

// byWitness is the size of the largest checkpoint that a witness cosigned, and the latest time at which it did.
type byWitness struct {
	size uint64
	at   time.Time
}

// latest is the later one of both, in size and time by themselves.
func (c byWitness) latest(other byWitness) byWitness {
	return byWitness{max(c.size, other.size), later(c.at, other.at)}
}

func (u *uncompared) add(e expected) {
	u.count, u.last = u.count+1, e.Size
	if len(e.Witnesses) == 0 {
		u.unwitnessed, u.lastOfThese = u.unwitnessed+1, e.Size
		return
	}
	var names []string
	last := byWitness{size: e.Size}
	for _, w := range e.Witnesses {
		names = append(names, w.Name)
		last = last.latest(byWitness{at: w.At})
	}
	slices.Sort(names)
	if u.witnessed == nil {
		u.witnessed = map[string]byWitness{}
	}
	all := strings.Join(slices.Compact(names), "\n")
	u.witnessed[all] = last.latest(u.witnessed[all])
}

// cosignings are what each witness cosigned, by the size of checkpoints: they are looked at in this order. A witness cosigns no less than before, unless it was
// told to begin anew, and then it knows nothing of what it saw.
type cosignings map[string]*cosigning

type cosigning struct {
	size         uint64
	before, of   time.Time // the latest of those of less, and of this size
	hasBegunAnew bool
}

func (c cosignings) add(e expected) {
	for _, w := range e.Witnesses {
		s := c[w.Name]
		if s == nil {
			s = &cosigning{size: e.Size}
			c[w.Name] = s
		}
		if e.Size > s.size {
			s.size, s.before = e.Size, later(s.before, s.of)
		}
		s.of = later(s.of, w.At)
		s.hasBegunAnew = s.hasBegunAnew || w.At.Before(s.before)
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// doubts say why the log may be another one than the one that they were signed of. by is the last checkpoint that each witness cosigned and that
// fits the log. A witness that cosigned less after more vouches for nothing.
func (u *uncompared) doubts(by map[string]byWitness, all cosignings) (texts []string) {
	const unlinked = "nothing shows that this log continues that one, since its records were pruned"
	if u.unwitnessed > 0 {
		texts = append(texts, fmt.Sprintf("%d checkpoints from elsewhere, the last of them of %d records, were cosigned by no witness among the keys: %s", u.unwitnessed, u.lastOfThese, unlinked))
	}
	for _, names := range slices.Sorted(maps.Keys(u.witnessed)) {
		c, of := u.witnessed[names], strings.Split(names, "\n")
		isAnew := func(name string) bool { return all[name] != nil && all[name].hasBegunAnew }
		vouches := func(name string) bool { return by[name].size > c.size && !by[name].at.Before(c.at) && !isAnew(name) }
		switch who := strings.Join(of, " and "); {
		case slices.ContainsFunc(of, vouches):
		case slices.ContainsFunc(of, isAnew):
			texts = append(texts, fmt.Sprintf("%s cosigned a log of %d records, and less after more, as one does that was told to begin anew: %s", who, c.size, unlinked))
		default:
			texts = append(texts, fmt.Sprintf("%s cosigned a log of %d records at %s, and no larger checkpoint of this one since: %s", who, c.size, c.at.UTC().Format(time.RFC3339), unlinked))
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
		return &Fault{v.start, 0, e.Size, fmt.Sprintf("it is not the tree of the log that the checkpoint in %s line %d signs", e.file, e.line)}
	case other.file != "" && other.Size == e.Size && other.Root != e.Root:
		return &Fault{e.file, e.line, e.Size, fmt.Sprintf("it and the checkpoint in %s line %d sign different logs of %d records", other.file, other.line, e.Size)}
	case !isKnown && e.file != v.own:
		v.report.uncompared.add(e)
	}
	return nil
}

// overlap judges records that are still present although the tree of the removed ones covers them. The tree that checkpoints are compared with does not contain
// them: only the hash in the record behind them does, and the holder of the log's key can write such a record. A process that was killed while it removed segments
// leaves such a log, and its next start removes the rest. A replaced start file looks the same.
func (v *verification) overlap(first uint64, isPartial bool) error {
	own := uint64(0)
	for _, e := range v.expect {
		if !e.isOutside {
			own = max(own, e.Size)
		}
	}
	if first == 0 || own > 0 && !isPartial && isUnheld(first, v.first, own) {
		v.isUnheld = first > 0
		return &Fault{v.start, 0, first, unheld(first, v.first, own)}
	}
	if !v.isLast {
		return errGoing
	}
	v.report.Uncovered = fmt.Sprintf("records %d to %d are still present, but the file start counts them as removed, so that no checkpoint covers them", first, v.first.end)
	v.report.incomplete("%s. The proxy's next start removes those that a LogPrune record names; a copy that keeps more than the node needs the start file that belongs to its first segment", v.report.Uncovered)
	return nil
}
