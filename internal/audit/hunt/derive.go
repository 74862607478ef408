package hunt

import (
	"strconv"
	"time"
)

// seen is the highest bundle revision of a node.
type seen struct {
	highest uint64
	since   time.Time
	before  uint64 // the highest one before that
}

// settle is how long calls that were judged by the bundle before may still be recorded after the first call of a new one.
const settle = time.Minute

// maxNodes bounds the memory for bundle revisions.
const maxNodes = 10_000

// Fields that derive looks at.
const (
	fieldIntent     = "intent_seq"
	fieldNode       = "where.node"
	fieldPolicyName = "decision.policy.name"
	fieldBundle     = "decision.policy.bundle"
)

// derive adds what no record says by itself: derived.bundle_before, the highest revision of a bundle that has decided on this
// node for a minute. The end of a call repeats the decision of its intent, and says nothing new.
func (h *Hunter) derive(f Fields, at time.Time) {
	revision, err := strconv.ParseUint(f.first(fieldBundle), 10, 64)
	if err != nil || f.first(fieldIntent) != "" {
		return
	}
	key := strconv.Quote(f.first(fieldNode)) + strconv.Quote(f.first(fieldPolicyName))
	s := h.bundles[key]
	if s == nil {
		if len(h.bundles) >= maxNodes {
			return
		}
		s = &seen{}
		h.bundles[key] = s
	}
	if revision > s.highest {
		s.before, s.highest, s.since = s.highest, revision, at
	}
	known := s.before
	if at.Sub(s.since) >= settle {
		known = s.highest
	}
	if known > 0 {
		f["derived.bundle_before"] = []string{strconv.FormatUint(known, 10)}
	}
}
