package audit

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// shorten returns a copy of e in which no string takes more than limit bytes of JSON (and its mark),
// and no list more than a few entries. What e points to is shared with the caller, so it is copied first, and so are its texts, which
// may be parts of longer ones.
func shorten(e Event, limit int) Event {
	entries := max(4, limit/32)
	clip := func(texts ...*string) {
		for _, s := range texts {
			*s = strings.Clone(clipText(*s, limit))
		}
	}
	clip((*string)(&e.Type), (*string)(&e.Stage), &e.ID, &e.Prev)
	if e.Log = clone(e.Log); e.Log != nil {
		shortenLog(e.Log, clip, entries)
	}
	if e.Who = clone(e.Who); e.Who != nil {
		shortenWho(e.Who, clip, entries)
	}
	if e.What = clone(e.What); e.What != nil {
		shortenWhat(e.What, clip, entries, limit)
	}
	if e.Decision = clone(e.Decision); e.Decision != nil {
		d := e.Decision
		clip((*string)(&d.Effect), &d.Reason, &d.Rule, &d.Mode)
		d.Permits = clipList(d.Permits, entries, func(mark string) string { return mark })
		for i := range d.Permits {
			clip(&d.Permits[i])
		}
		if d.Policy = clone(d.Policy); d.Policy != nil {
			clip(&d.Policy.Name, &d.Policy.Revision)
		}
	}
	if e.Outcome = clone(e.Outcome); e.Outcome != nil {
		clip(&e.Outcome.Result, &e.Outcome.Code, &e.Outcome.Error)
	}
	if e.Corr = clone(e.Corr); e.Corr != nil {
		clip(&e.Corr.Conn, &e.Corr.AdmissionUID)
	}
	if e.Where = clone(e.Where); e.Where != nil {
		clip(&e.Where.Node)
	}
	return e
}

func shortenLog(g *Log, clip func(...*string), entries int) {
	clip(&g.PreviousSession, &g.PreviousSegment, &g.PreviousTornHash, &g.Cause, &g.Fault, &g.Note, &g.Segment)
	cut := func(mark string) string { return mark }
	g.Void = clipList(g.Void, entries, cut)
	for i := range g.Void {
		clip(&g.Void[i])
	}
	g.VoidHeld = clipList(g.VoidHeld, entries, cut)
	for i := range g.VoidHeld {
		clip(&g.VoidHeld[i])
	}
	if g.Pruned = clone(g.Pruned); g.Pruned != nil {
		p := g.Pruned
		clip(&p.Root, &p.Reason)
		p.Segments = clipList(p.Segments, entries, cut)
		for i := range p.Segments {
			clip(&p.Segments[i])
		}
	}
}

func shortenWho(w *Who, clip func(...*string), entries int) {
	clip(&w.Assurance, &w.TokenID, &w.TokenState)
	if w.Process = clone(w.Process); w.Process != nil {
		clip(&w.Process.Exe)
	}
	if w.User = clone(w.User); w.User != nil {
		w.User.Groups = clipList(w.User.Groups, entries, func(mark string) string { return mark })
		clip(&w.User.SID, &w.User.Name)
		for i := range w.User.Groups {
			clip(&w.User.Groups[i])
		}
	}
	if w.Pod = clone(w.Pod); w.Pod != nil {
		clip(&w.Pod.Namespace, &w.Pod.Name, &w.Pod.UID, &w.Pod.ServiceAccount)
	}
	if w.Container = clone(w.Container); w.Container != nil {
		clip(&w.Container.ID, &w.Container.Name, &w.Container.Image)
	}
	clip(&w.Doubt)
}

func shortenWhat(w *What, clip func(...*string), entries, limit int) {
	clip(&w.Pipe, &w.Group, &w.Version, &w.Method, &w.FullMethod, &w.Verb)
	if w.Params = slices.Clone(w.Params); len(w.Params) > limit {
		w.Params = fmt.Appendf(nil, `"[%d bytes cut]"`, len(w.Params))
	}
	w.Redacted = clipList(w.Redacted, entries, func(mark string) string { return mark })
	for i := range w.Redacted {
		clip(&w.Redacted[i])
	}
	w.Targets = clipList(w.Targets, entries, func(mark string) Target { return Target{Kind: "cut", Value: mark} })
	for i := range w.Targets {
		clip(&w.Targets[i].Kind, &w.Targets[i].Value, &w.Targets[i].Canonical)
	}
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// clipList returns a copy of the first entries of list and a mark for those left out.
func clipList[T any](list []T, entries int, mark func(string) T) []T {
	if len(list) <= entries {
		return slices.Clone(list)
	}
	return append(slices.Clone(list[:entries]), mark(fmt.Sprintf("[%d entries cut]", len(list)-entries)))
}

// Cut is the beginning of a text, with the mark by which readers know that so many bytes are missing.
func Cut(beginning string, missing int) string {
	return fmt.Sprintf("%s[%d bytes cut]", beginning, missing)
}

// clipText cuts s so that its JSON takes at most limit bytes, and says how much is missing.
func clipText(s string, limit int) string {
	size := 0
	for i, r := range s {
		if size += encodedLen(r); size > limit {
			return Cut(s[:i], len(s)-i)
		}
	}
	return s
}

// encodedLen is an upper bound for the bytes that a character takes in a record.
func encodedLen(r rune) int {
	switch {
	case r > 0xFFFF && isInvisible(r):
		return 12
	case r < 0x20, r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029', r == utf8.RuneError, isInvisible(r):
		return 6
	case r == '"', r == '\\':
		return 2
	}
	return utf8.RuneLen(r)
}
