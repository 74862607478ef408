package query

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Filter chooses records. Values of one field are alternatives, fields must all fit, and what is excluded may not fit.
// The zero Filter chooses all.
type Filter struct {
	fields   []wantedField
	excluded []excluded
	since    time.Time // the zero time is no bound
	until    time.Time
	asked    []*asked // what some record should have
	doubts   map[string]uint64
}

type wantedField struct {
	key string
	any []test
}

type excluded struct {
	key string
	has test
}

type test func(e *audit.Event) fit

// fit says how many of the requests that a record stands for have a value. One that stands for a single request has none or all, unless it does not
// hold what was asked.
type fit int

const (
	none fit = iota
	may      // the record does not say
	some     // at least one, and the others may
	all
)

func fits(isFit bool) fit {
	if isFit {
		return all
	}
	return none
}

// asked is a value that was asked for.
type asked struct {
	key, text string
	has       test
	isSeen    atomic.Bool
}

// Match says whether a record fits, or may fit: what it does not hold could be what was asked. It remembers which of the values that were
// asked for the record has, and how many requests may not fit; see Unseen and Doubts.
func (f *Filter) Match(e *audit.Event) bool {
	for _, v := range f.asked {
		if v.isIn(e) {
			v.isSeen.Store(true)
		}
	}
	doubts, isFit := f.fit(e)
	for _, key := range doubts {
		if f.doubts == nil {
			f.doubts = map[string]uint64{}
		}
		f.doubts[key] += e.Count()
	}
	return isFit
}

// isNew says whether Match would remember that a record has a value that none had so far.
func (f *Filter) isNew(e *audit.Event) bool {
	return slices.ContainsFunc(f.asked, func(v *asked) bool { return v.isIn(e) })
}

// isIn says whether a record is the first one that has the value, or may have it.
func (v *asked) isIn(e *audit.Event) bool { return !v.isSeen.Load() && v.has(e) != none }

// fit says whether a record fits, or may, and the keys of what it does not say.
func (f *Filter) fit(e *audit.Event) (doubts []string, isFit bool) {
	switch f.within(e) {
	case none:
		return nil, false
	case may:
		doubts = append(doubts, "time")
	}
	for _, field := range f.fields {
		best := none
		for _, t := range field.any {
			best = max(best, t(e))
		}
		switch best {
		case none:
			return nil, false
		case may, some:
			doubts = append(doubts, field.key)
		}
	}
	for _, x := range f.excluded {
		switch x.has(e) {
		case all:
			return nil, false
		case may, some:
			doubts = append(doubts, x.key)
		}
	}
	slices.Sort(doubts)
	return slices.Compact(doubts), true
}

// Doubt is how many requests were chosen without their records saying whether a field has the value that was asked for; Key is time for
// bounds of time.
type Doubt struct {
	Key   string
	Count uint64
}

// Doubts are those of all records that Match chose: the number of requests that fit is at most what is counted.
func (f *Filter) Doubts() (found []Doubt) {
	for _, key := range slices.Sorted(maps.Keys(f.doubts)) {
		found = append(found, Doubt{key, f.doubts[key]})
	}
	return found
}

// Unseen names the values that none of the records had, or may have had, that Match was asked about, such as pipe "disk-v9". Words that a field is known to
// have are not among them: that no record has one is an answer.
func (f *Filter) Unseen() (names []string) {
	for _, v := range f.asked {
		if !v.isSeen.Load() {
			names = append(names, fmt.Sprintf("%s %q", v.key, v.text))
		}
	}
	return names
}

// look has Match look for a value.
func (f *Filter) look(key, text string, has test) {
	if closed[key] == nil && !isNone(key, text) {
		f.asked = append(f.asked, &asked{key: key, text: text, has: has})
	}
}

// within says whether a record lies between the bounds. Of a summary that reaches beyond a bound, it is not known how much of it does, and of one
// during which the clock was set back, it is not known when its refusals were.
func (f *Filter) within(e *audit.Event) fit {
	first, last := e.Begin(), e.Time
	switch {
	case e.IsClockSetBack() && (!f.since.IsZero() || !f.until.IsZero()):
		return may
	case !f.since.IsZero() && last.Before(f.since), !f.until.IsZero() && !first.Before(f.until):
		return none
	case !f.since.IsZero() && first.Before(f.since), !f.until.IsZero() && !last.Before(f.until):
		return may
	}
	return all
}

// Want adds a value that a field may have. An error is a *SyntaxError in value.
func (f *Filter) Want(key, value string, now time.Time) error {
	if key == "since" || key == "until" {
		return f.bound(key, value, now)
	}
	t, err := newTest(key, value)
	if err != nil {
		return err
	}
	f.look(key, value, t)
	i := slices.IndexFunc(f.fields, func(of wantedField) bool { return of.key == key })
	if i < 0 {
		i = len(f.fields)
		f.fields = append(f.fields, wantedField{key: key})
	}
	f.fields[i].any = append(f.fields[i].any, t)
	return nil
}

// Exclude adds a value that a field may not have.
func (f *Filter) Exclude(key, value string) error {
	if key == "since" || key == "until" {
		return fault(value, 0, "a time bounds, it excludes nothing: write since=… or until=…")
	}
	t, err := newTest(key, value)
	if err != nil {
		return err
	}
	f.look(key, value, t)
	f.excluded = append(f.excluded, excluded{key, t})
	return nil
}

// bound sets the first moment, or the moment before which records end.
func (f *Filter) bound(key, value string, now time.Time) error {
	t, err := ParseTime(value, now)
	if err != nil {
		return err
	}
	at, isWithin := &f.since, (&Filter{since: t}).within
	if key == "until" {
		at, isWithin = &f.until, (&Filter{until: t}).within
	}
	if !at.IsZero() {
		return fault(value, 0, "%s is given twice", key)
	}
	f.look(key, value, isWithin)
	if *at = t; !f.since.IsZero() && !f.until.IsZero() && !f.since.Before(f.until) {
		return fault(value, 0, "nothing lies between since %s and until %s", f.since.Format(time.RFC3339), f.until.Format(time.RFC3339))
	}
	return nil
}

func newTest(key, value string) (test, error) {
	switch key {
	case "seq":
		low, high, err := numbers(value)
		if err == nil && high == 0 {
			err = fault(value, 0, "records are numbered from 1 on: write 7, 7-9, 7- or -9")
		}
		return func(e *audit.Event) fit { return fits(low <= e.Seq && e.Seq <= high) }, err
	case "bundle":
		low, high, err := numbers(value)
		return func(e *audit.Event) fit {
			if isUnsaid(key, e) {
				return may
			}
			return fits(e.Decision != nil && e.Decision.Policy != nil && low <= e.Decision.Policy.Bundle && e.Decision.Policy.Bundle <= high)
		}, err
	case "path":
		if !isAbsolute(value) {
			return nil, fault(value, 0, `no absolute path without *: write C:\var\lib or \\server\share, which fit what lies below too; target=… fits any text`)
		}
		isOfPipes := pipeDirectory.MatchString(value)
		return func(e *audit.Event) fit {
			return named(e, func(t audit.Target) bool { return leadsTo(t, value) }, func(t audit.Target) bool {
				return mayLie(t, value) || isOfPipes && e.Type == audit.TypeAdmission && leadsToPipes(t)
			})
		}, nil
	}
	values, ok := texts[key]
	if !ok {
		return nil, fault(key, 0, "no field: there are %s", strings.Join(Keys(), ", "))
	}
	if isNone(key, value) {
		return func(e *audit.Event) fit {
			isNone := hasNone(values(e))
			if isNone && leavesOut(key, e) || isUnsaid(key, e) && (isNone || !isPartly(key)) {
				return may
			}
			return fits(isNone)
		}, nil
	}
	if key == "pipe" {
		value = value[len(pipeDirectory.FindString(value)):]
	}
	if err := hasForm(key, value); err != nil {
		return nil, err
	}
	matches := pattern(value)
	switch {
	case closed[key] != nil:
		any, err := meant(key, value)
		if err != nil {
			return nil, err
		}
		matches = func(s string) bool { return slices.Contains(any, strings.ToLower(s)) }
	case key == "token" && !isToken(value):
		return nil, fault(value, 0, "token is yes, no, %s, %s or the id of a token", audit.TokenStale, audit.TokenUnbound)
	}
	if key == "target" {
		return func(e *audit.Event) fit {
			return named(e, func(t audit.Target) bool { return matches(t.Value) || matches(t.Canonical) }, nil)
		}, nil
	}
	return func(e *audit.Event) fit {
		has := values(e)
		isFit := slices.ContainsFunc(has, matches)
		if isCut(e, has) || isUnsaid(key, e) && (!isFit || !isPartly(key)) || !isFit && leavesOut(key, e) {
			return may
		}
		return fits(isFit)
	}, nil
}

// numbers reads 7, 7-9, 7- and -9.
func numbers(text string) (low, high uint64, err error) {
	before, after, isRange := strings.Cut(text, "-")
	high = 1<<64 - 1
	if before != "" {
		if low, err = strconv.ParseUint(before, 10, 64); err != nil {
			return 0, 0, fault(text, 0, "no number: write 7, 7-9, 7- or -9")
		}
	}
	switch {
	case !isRange && before == "" || isRange && before == "" && after == "":
		return 0, 0, fault(text, 0, "a number is missing: write 7, 7-9, 7- or -9")
	case !isRange:
		return low, low, nil
	case after != "":
		if high, err = strconv.ParseUint(after, 10, 64); err != nil {
			return 0, 0, fault(text, len(before)+1, "no number: write 7, 7-9, 7- or -9")
		}
	}
	if low > high {
		return 0, 0, fault(text, len(before)+1, "the range ends before it begins")
	}
	return low, high, nil
}
