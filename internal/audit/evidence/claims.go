package evidence

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// claims are what the records of a log say about the log: which records were removed, and which were not signed when the process that wrote them
// ended. An attacker can have added to the latter before the next start signed them, so their own claims do not count.
type claims struct {
	prunes    []claim
	takeOvers []claim
	orphans   []claim // ends that a start wrote for intents, by the intents' numbers
}

// claim is what the record with number at says about the records in of.
type claim struct {
	at uint64
	of Range
}

// anyone makes claims count that are not covered by a checkpoint, in a log that is read without keys.
const anyone = math.MaxUint64

// add collects the claims of a record.
func (c *claims) add(r *Record) {
	switch {
	case r.isOrphan:
		if intent := r.intent(); intent > 0 && intent < r.Seq {
			c.orphans = append(c.orphans, claim{r.Seq, Range{intent, intent}})
		}
	case r.stage == string(audit.StageLogPrune):
		if d, err := r.logOf(); err == nil && d.Pruned != nil {
			c.prunes = append(c.prunes, claim{r.Seq, Range{1, d.Pruned.LastSeq}})
		}
	case r.stage == string(audit.StageLogOpen):
		if d, err := r.logOf(); err == nil && d.Unsigned > 0 && d.Unsigned <= d.PreviousSeq && d.PreviousSeq < r.Seq {
			c.takeOvers = append(c.takeOvers, claim{r.Seq, Range{d.PreviousSeq - d.Unsigned + 1, d.PreviousSeq}})
		}
	}
}

// takenOver are the records that were signed by a later start than the one that wrote them, in order. covered is how many records a checkpoint
// covers. A start that was killed before it was signed is itself among what the next one took over.
func (c *claims) takenOver(covered uint64) (list []Range) {
	for _, t := range slices.Backward(c.takeOvers) {
		if t.at <= covered && !within(list, t.at) {
			list = append(list, t.of)
		}
	}
	slices.Reverse(list)
	return list
}

// pruned is the last record that was removed, as a record says that was signed by the process that wrote it. A process signs that record before
// it removes anything, so one that was taken over removed nothing.
func (c *claims) pruned(covered uint64) (last uint64) {
	takenOver := c.takenOver(covered)
	for _, p := range c.prunes {
		if p.at <= covered && !within(takenOver, p.at) {
			last = max(last, p.of.Last)
		}
	}
	return last
}

// ended are the records by which a start ended intents that it took over: their content comes from those intents.
func (c *claims) ended(takenOver []Range) (seqs []uint64) {
	for _, o := range c.orphans {
		if within(takenOver, o.of.First) {
			seqs = append(seqs, o.at)
		}
	}
	return seqs
}

func within(ranges []Range, seq uint64) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool { return r.First <= seq && seq <= r.Last })
}

// intent is the number of the intent that the record ends, 0 if it names none.
func (r *Record) intent() uint64 {
	var f struct {
		IntentSeq uint64 `json:"intent_seq"`
	}
	if json.Unmarshal(r.Raw, &f) != nil {
		return 0
	}
	return f.IntentSeq
}
