package report

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// Bounds of what is kept while a log is read, and of what is shown.
const (
	maxGroups = 2000 // a record each
	maxOpen   = 4096 // intents whose end has not come, a record each: more than a proxy carries out at once
	maxRows   = 200
	maxNamed  = 50 // lines that are no records
)

// Summary is what a log says, in bounded memory.
type Summary struct {
	records, intents, ends, admissions, connections int
	outcome                                         map[string]int // requests by result
	first, last                                     time.Time
	time                                            timeline
	callers, denials, failures, refused             groups
	policies, openings, closed                      list
	open                                            map[string]query.Record // intents by id, without their events
	openLost                                        int
	deciding                                        map[deciding]revision
	bad                                             []string
	badCount                                        int
}

// deciding is the policy of a name on a node, and revision what it says there.
type (
	deciding struct{ node, name string }
	revision struct {
		digest string
		bundle uint64
	}
)

func (r revision) String() string {
	if r.bundle != 0 {
		return r.digest + ", bundle " + strconv.FormatUint(r.bundle, 10)
	}
	return r.digest
}

// Parts are the parts of records that Collect looks at. It keeps none of an event.
const Parts = audit.PartLog | audit.PartWho | audit.PartWhat | audit.PartDecision | audit.PartWhere

// Collect reads a log to its end. Lines that are no records become part of the summary.
func Collect(records iter.Seq2[query.Record, error]) (*Summary, error) {
	s := &Summary{
		outcome: map[string]int{}, open: map[string]query.Record{}, deciding: map[deciding]revision{},
		callers: groups{max: maxGroups}, denials: groups{max: maxGroups}, failures: groups{max: maxGroups}, refused: groups{max: maxGroups},
		policies: list{max: maxRows}, openings: list{max: maxRows}, closed: list{max: maxRows},
	}
	for r, err := range records {
		bad := new(*query.BadLine)
		switch {
		case errors.As(err, bad):
			if s.badCount++; s.badCount <= maxNamed {
				s.bad = append(s.bad, err.Error())
			}
		case err != nil:
			return nil, err
		default:
			s.add(r)
		}
	}
	return s, nil
}

// Bad is how many lines are no records.
func (s *Summary) Bad() int { return s.badCount }

func (s *Summary) add(r query.Record) {
	s.records++
	if begin := r.Begin(); s.first.IsZero() || begin.Before(s.first) {
		s.first = begin
	}
	if r.Time.After(s.last) {
		s.last = r.Time
	}
	s.policy(r)
	switch {
	case r.Type == audit.TypeLog:
		s.opening(r)
	case r.Type == audit.TypeConnection:
		s.connections += int(r.Count()) // #nosec G115 -- bounded
		if r.Outcome != nil && r.Outcome.Result == audit.ResultRejected {
			s.refused.add(r, query.Caller(&r.Event), r.Outcome.Error)
		}
	case r.Stage == audit.StageRequestReceived:
		s.intent(r)
	default:
		s.end(r)
	}
}

// intent is counted with its end; it waits for that.
func (s *Summary) intent(r query.Record) {
	s.intents++
	if len(s.open) >= maxOpen {
		s.openLost++
		return
	}
	s.open[strings.Clone(r.ID)] = held(r)
}

// held is a record that may be asked for again: its line, without the event.
func held(r query.Record) query.Record {
	return query.Record{Event: audit.Event{Seq: r.Seq, Time: r.Time}, Raw: bytes.Clone(r.Raw), File: r.File, Line: r.Line}
}

func (s *Summary) end(r query.Record) {
	if r.Type == audit.TypeAdmission {
		s.admissions++
	} else {
		s.ends += int(r.Count()) // #nosec G115 -- bounded
	}
	intent, isOpen := s.open[r.ID]
	delete(s.open, r.ID)
	if r.Stage == audit.StageOrphaned {
		if isOpen {
			intent = intent.Whole()
		} else {
			intent = r
		}
		s.closed.add(intent, query.Caller(&intent.Event), method(&intent.Event), "its end was not recorded; the next start closed it")
	}
	result := "none"
	if r.Outcome != nil {
		result = r.Outcome.Result
	}
	s.outcome[result] += int(r.Count()) // #nosec G115 -- bounded
	s.time.add(&r.Event)
	s.callers.add(r, query.Caller(&r.Event))
	switch d := query.Decision(&r.Event); {
	case d == query.DecisionDeny, d == query.DecisionLogOnly:
		how := "denied"
		if d == query.DecisionLogOnly {
			how = "denied, and carried out (LogOnly)"
		}
		s.denials.add(r, query.Caller(&r.Event), method(&r.Event), how, r.Decision.Rule, r.Decision.Reason)
	case r.Outcome != nil && r.Outcome.Result != audit.ResultOK:
		s.failures.add(r, query.Caller(&r.Event), method(&r.Event), r.Outcome.Result, r.Outcome.Code)
	}
}

// maxDeciding bounds the memory for nodes and policies.
const maxDeciding = 4096

// policy notes when another revision begins to decide. The end of a call repeats the decision of its intent, and says nothing new.
func (s *Summary) policy(r query.Record) {
	if r.Decision == nil || r.Decision.Policy == nil || r.IntentSeq != 0 {
		return
	}
	p, node := r.Decision.Policy, ""
	if r.Where != nil {
		node = r.Where.Node
	}
	key, now := deciding{node, p.Name}, revision{p.Revision, p.Bundle}
	before, known := s.deciding[key]
	switch {
	case before == now && known:
		return
	case !known && len(s.deciding) >= maxDeciding:
		s.policies.rest++
		return
	}
	now.digest = strings.Clone(now.digest) // rather than keep the whole line of the record
	s.deciding[deciding{strings.Clone(node), strings.Clone(p.Name)}] = now
	s.policies.add(r, cmp.Or(node, "-"), cmp.Or(p.Name, "-"), now.String(), cmp.Or(before.String(), "-"))
}

func (s *Summary) opening(r query.Record) {
	what := ""
	if r.Log != nil && r.Stage == audit.StageLogOpen {
		what = "the first one of the log"
		if r.Log.PreviousSession != "" {
			what = fmt.Sprintf("after record %d of session %s", r.Log.PreviousSeq, r.Log.PreviousSession)
		}
		if r.Log.TornBytes > 0 {
			what += fmt.Sprintf("; %d bytes of a record that was cut off", r.Log.TornBytes)
		}
		if n := r.Log.Unsigned; n > 0 {
			what += fmt.Sprintf("; %d records before it were not signed when their process ended", n)
		}
	}
	s.openings.add(r, string(r.Stage), r.Session, what)
}

// orphans are the intents that nothing has ended, and those that a start has closed.
func (s *Summary) orphans() list {
	all := list{max: maxRows, rows: s.closed.rows, rest: s.closed.rest + s.openLost}
	for _, r := range slices.SortedFunc(maps.Values(s.open), func(a, b query.Record) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Seq, b.Seq))
	}) {
		r = r.Whole()
		all.add(r, query.Caller(&r.Event), method(&r.Event), "no record ends it: it was in flight when the log was copied, or the proxy was killed")
	}
	return all
}

func method(e *audit.Event) string {
	if e.What == nil {
		return ""
	}
	return cmp.Or(e.What.Method, e.What.FullMethod, e.What.Verb)
}
