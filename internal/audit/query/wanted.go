package query

import "github.com/pipeguard/pipeguard/internal/audit"

// Wanted says which records a reader has a use for. Lines are judged by it on all processors, and most are neither kept nor told; the zero value
// wants all.
type Wanted struct {
	// Has is given a record, of which only Parts are there. It must not keep it, and may be called by several goroutines at the same time.
	Has   func(e *audit.Event) bool
	Parts audit.Parts
	// Lends says that of the records that are told, too, only Parts are wanted, and until the next one is asked for: Record.Keep then returns the whole
	// record.
	Lends bool
}

// Wanted are the records that a caller of Match has a use for who does something only with those that fit and for which counts is true, which looks at parts and
// may be nil: of all others, Match says nothing, and learns nothing for Unseen and Doubts.
func (f *Filter) Wanted(parts audit.Parts, counts func(e *audit.Event) bool) Wanted {
	if counts == nil && len(f.fields)+len(f.excluded) == 0 && f.since.IsZero() && f.until.IsZero() {
		return Wanted{} // all fit
	}
	for _, has := range f.fields {
		parts |= looksAt(has.key)
	}
	for _, x := range f.excluded {
		parts |= looksAt(x.key)
	}
	return Wanted{Parts: parts, Has: func(e *audit.Event) bool {
		doubts, isFit := f.fit(e)
		return isFit && (len(doubts) > 0 || counts == nil || counts(e)) || f.isNew(e)
	}}
}

// looksAt are the parts that a filter looks at for a key. A key that is not named here looks at all.
func looksAt(key string) audit.Parts {
	switch key {
	case "type", "stage", "session", "id", "seq", "since", "until", "result", "code", "error":
		return 0
	case "assurance", "namespace", "pod", "sa", "container", "image", "user", "program", "pid", "host", "token":
		return audit.PartWho
	case "group", "version", "method", "verb":
		return audit.PartWhat
	case "pipe", "target", "path": // what was refused before it was read has no decision
		return audit.PartWhat | audit.PartParams | audit.PartTargets | audit.PartDecision
	case "decision", "effect", "mode", "rule", "reason", "policy", "revision", "bundle":
		return audit.PartDecision
	case "conn":
		return audit.PartCorr
	case "node":
		return audit.PartWhere
	}
	return audit.AllParts
}
