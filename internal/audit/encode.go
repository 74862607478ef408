package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// MaxRecord is the longest record in bytes, its newline included. Longer lines are split or
// dropped by common log shippers, and a bound keeps one caller from filling the disk with one request.
const MaxRecord = 8192

// What a writer sets takes at most so much of a line: 20 digits, a session as Go makes them, and a hash with its key. A line is cut as if it took
// all of that, so that the cuts do not depend on it.
const mostStamped = 20 + 26 + len(`,"prev":""`) + 44

// stamped is how much of that a line has.
func stamped(e *Event) int {
	n := len(strconv.FormatUint(e.Seq, 10)) + len(e.Session)
	if e.Prev != "" {
		n += len(`,"prev":""`) + len(e.Prev)
	}
	return n
}

// Encode returns one record as a line of JSON, at most MaxRecord bytes long with its newline, in the memory of dst if there is room. A longer event is
// shortened in steps, each cut leaving a mark in its place.
func Encode(dst []byte, e Event) ([]byte, error) {
	_, line, err := fit(dst, e)
	return line, err
}

// fit returns the event as its line has it, with the line.
func fit(dst []byte, e Event) (Event, []byte, error) {
	var line []byte
	var err error
	most := MaxRecord + min(stamped(&e)-mostStamped, 0)
	if leastSize(e) <= MaxRecord { // the usual case; what is longer for certain is not encoded in vain
		if line, err = marshal(dst, e); err != nil || len(line) <= most {
			return e, line, err
		}
	}
	for _, limit := range []int{1024, 256, 64} {
		short := shorten(e, limit)
		if line, err = marshal(dst, short); err != nil || len(line) <= most {
			return short, line, err
		}
	}
	return Event{}, nil, fmt.Errorf("audit record of %d bytes cannot be shortened to %d", len(line), MaxRecord)
}

// Fit returns a copy of e that is cut as its line will be, whatever number and session it gets, and that keeps no more memory than it needs: for
// records that wait to be written. The line of the copy is that of e.
func Fit(e Event) (Event, error) {
	e.Time = e.Time.UTC()
	short, _, err := fit(nil, e)
	if err != nil {
		return Event{}, err
	}
	return shorten(short, math.MaxInt), nil
}

// leastSize is a lower bound for the length of the record: the parts that a caller can make long.
func leastSize(e Event) int {
	n := len(e.ID)
	if e.What != nil {
		n += len(e.What.FullMethod) + len(e.What.Params)
		for _, t := range e.What.Targets {
			n += len(t.Value) + len(t.Canonical)
		}
	}
	if e.Who != nil && e.Who.Process != nil {
		n += len(e.Who.Process.Exe)
	}
	if e.Who != nil && e.Who.User != nil {
		for _, g := range e.Who.User.Groups {
			n += len(g)
		}
	}
	if e.Outcome != nil {
		n += len(e.Outcome.Error)
	}
	return n
}

// marshal makes the line. Params that are not JSON are kept as a string rather than lost.
func marshal(dst []byte, e Event) ([]byte, error) {
	if e.What != nil && len(e.What.Params) > 0 && !json.Valid(e.What.Params) {
		what := *e.What
		text, err := json.Marshal(string(what.Params))
		if err != nil {
			return nil, fmt.Errorf("encode params of an audit record: %w", err)
		}
		what.Params = text
		e.What = &what
	}
	if year := e.Time.Year(); year < 1 || year > 9999 {
		return nil, errors.New("audit record has a time that RFC 3339 cannot express")
	}
	return append(appendEvent(dst[:0], &e), '\n'), nil
}

// isInvisible says that a record writes r as a JSON escape, such as DEL, the C1 controls, and letters that show nothing: JSON asks only for the ASCII
// controls, and a record must look in a terminal like what it is.
func isInvisible(r rune) bool {
	return r >= 0x7F && !inert.IsInert(r)
}
