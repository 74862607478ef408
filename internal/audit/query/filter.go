package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Filter chooses records. Values of one field are alternatives, fields must all fit, and what is excluded may not fit.
// The zero Filter chooses all.
type Filter struct {
	fields   []wanted
	excluded []test
	since    time.Time // the zero time is no bound
	until    time.Time
	unseen   []*asked // what no record had so far
}

type wanted struct {
	key   string
	tests []test
}

type test func(e *audit.Event) bool

// asked is a value that was asked for.
type asked struct {
	key, text string
	has       test
}

// Match says whether a record fits. It remembers which of the values that were asked for the record has; see Unseen.
func (f *Filter) Match(e *audit.Event) bool {
	f.unseen = slices.DeleteFunc(f.unseen, func(v *asked) bool { return v.has(e) })
	if !f.since.IsZero() && e.Time.Before(f.since) || !f.until.IsZero() && !e.Time.Before(f.until) {
		return false
	}
	for _, w := range f.fields {
		if !slices.ContainsFunc(w.tests, func(t test) bool { return t(e) }) {
			return false
		}
	}
	return !slices.ContainsFunc(f.excluded, func(t test) bool { return t(e) })
}

// Unseen names the values that none of the records had that Match was asked about, such as pipe "disk-v9". Words that a field is known to
// have are not among them: that no record has one is an answer.
func (f *Filter) Unseen() (names []string) {
	for _, v := range f.unseen {
		names = append(names, fmt.Sprintf("%s %q", v.key, v.text))
	}
	return names
}

// look has Match look for a value.
func (f *Filter) look(key, text string, has test) {
	if closed[key] == nil && !isNone(key, text) {
		f.unseen = append(f.unseen, &asked{key, text, has})
	}
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
	for i := range f.fields {
		if f.fields[i].key == key {
			f.fields[i].tests = append(f.fields[i].tests, t)
			return nil
		}
	}
	f.fields = append(f.fields, wanted{key, []test{t}})
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
	f.excluded = append(f.excluded, t)
	return nil
}

// bound sets the first moment, or the moment before which records end.
func (f *Filter) bound(key, value string, now time.Time) error {
	t, err := ParseTime(value, now)
	if err != nil {
		return err
	}
	at, isWithin := &f.since, func(e *audit.Event) bool { return !e.Time.Before(t) }
	if key == "until" {
		at, isWithin = &f.until, func(e *audit.Event) bool { return e.Time.Before(t) }
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
		return func(e *audit.Event) bool { return low <= e.Seq && e.Seq <= high }, err
	case "bundle":
		low, high, err := numbers(value)
		return func(e *audit.Event) bool {
			return e.Decision != nil && e.Decision.Policy != nil && low <= e.Decision.Policy.Bundle && e.Decision.Policy.Bundle <= high
		}, err
	case "path":
		if !isAbsolute(value) {
			return nil, fault(value, 0, `no absolute path without *: write C:\var\lib or \\server\share, which fit what lies below too; target=… fits any text`)
		}
		return func(e *audit.Event) bool { return touches(e, value) }, nil
	}
	values, ok := texts[key]
	if !ok {
		return nil, fault(key, 0, "no field: there are %s", strings.Join(Keys(), ", "))
	}
	if isNone(key, value) {
		return func(e *audit.Event) bool {
			return !slices.ContainsFunc(values(e), func(s string) bool { return s != "" })
		}, nil
	}
	if key == "pipe" {
		value = value[len(pipeDirectory.FindString(value)):]
	}
	if err := hasForm(key, value); err != nil {
		return nil, err
	}
	matches := newPattern(value).matches
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
	return func(e *audit.Event) bool { return slices.ContainsFunc(values(e), matches) }, nil
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
