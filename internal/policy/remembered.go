package policy

import (
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
)

// The pods of one workload differ in their names and little else, and a controller whose pod is refused asks again and again. Where two inputs have the same values in
// all fields that the modules read, the decision is the same: beside the input, a rule reads data, which belongs to the snapshot, and no builtin that policies may call
// has another source (see allowedBuiltins). So a decision is made by OPA once, and remembered under a hash of these values.

// remembered holds the decisions of one snapshot that were made last, by the fingerprints of their inputs. What it holds is bounded however many
// different objects are made: when the newer half is full, the older one is forgotten.
type remembered struct {
	fields fields
	most   int // decisions in each half

	mu           sync.Mutex // guards the rest
	newer, older map[fingerprint]*Decision
}

// fingerprint is SHA-256 of what modules read of an input.
type fingerprint [sha256.Size]byte

const (
	// maxRememberedFindings and maxRememberedText, in bytes, bound one decision.
	maxRememberedFindings = 32
	maxRememberedText     = 4 << 10
)

// newRemembered returns nil, which remembers nothing, if it is not to hold any decision or modules read all of the input.
func newRemembered(read fields, most int) *remembered {
	if most == 0 || read.all {
		return nil
	}
	return &remembered{fields: read, most: most/2 + 1, newer: map[fingerprint]*Decision{}}
}

// find returns what the input of a question is remembered by, and the decision if there is one. The place is nil if the decision has to be made each time.
func (r *remembered) find(q Question) (place *fingerprint, d Decision, ok bool) {
	if r == nil {
		return nil, Decision{}, false
	}
	print, canBe := r.fields.fingerprint(q)
	if !canBe {
		return nil, Decision{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.newer[print]
	if found == nil {
		if found = r.older[print]; found == nil {
			return &print, Decision{}, false
		}
		r.add(print, found) // what is asked for again stays
	}
	return &print, found.clone(), true
}

// remember keeps a decision that was made from an input of this fingerprint, unless it is large, or advice is missing from it: that may be for want of time.
func (r *remembered) remember(place *fingerprint, d Decision) {
	if r == nil || place == nil || d.lacksAdvice() || d.isLarge() {
		return
	}
	own := d.clone()
	for i := range own.Findings { // a text may be a part of a longer one, which it would keep
		f := &own.Findings[i]
		*f = Finding{strings.Clone(f.Code), Effect(strings.Clone(string(f.Effect))), strings.Clone(f.Field), strings.Clone(f.Message)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(*place, &own)
}

// add needs mu.
func (r *remembered) add(at fingerprint, d *Decision) {
	if len(r.newer) >= r.most {
		r.newer, r.older = make(map[fingerprint]*Decision, r.most), r.newer
	}
	r.newer[at] = d
}

// lacksAdvice reports whether advice is missing from a decision.
func (d *Decision) lacksAdvice() bool {
	return slices.ContainsFunc(d.Findings, func(f Finding) bool { return f.Code == CodeAdviceFailed })
}

func (d *Decision) isLarge() bool {
	text := 0
	for _, f := range d.Findings {
		text += len(f.Code) + len(f.Effect) + len(f.Field) + len(f.Message)
	}
	return len(d.Findings) > maxRememberedFindings || len(d.Untold) > 0 || text > maxRememberedText
}

// clone returns a decision that shares no list with d.
func (d *Decision) clone() Decision {
	out := *d
	out.Findings, out.Untold = slices.Clone(d.Findings), slices.Clone(d.Untold)
	return out
}
