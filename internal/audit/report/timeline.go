package report

import (
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// maxBuckets bounds the columns of the timeline.
const maxBuckets = 120

// widths are how long a column can be. Each is a multiple of the one before, so that columns can be put together; the last one
// holds all the years that a record can have in 101 columns.
var widths = []time.Duration{
	time.Second, 10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
	7 * 24 * time.Hour, 28 * 24 * time.Hour, 364 * 24 * time.Hour, 3640 * 24 * time.Hour, 36400 * 24 * time.Hour,
}

// column counts the calls that ended in one span of time. Calls of summaries that began before it are counted where their summary ends: they may
// lie in any column since then.
type column struct {
	allowed, denied, logOnly, failed int

	summed int   // of these, those of such summaries
	since  int64 // when the first of such summaries began, in seconds since 1970
}

// with adds what another column counts.
func (c column) with(d column) column {
	if c.summed == 0 || d.summed > 0 && d.since < c.since {
		c.since = d.since
	}
	return column{c.allowed + d.allowed, c.denied + d.denied, c.logOnly + d.logOnly, c.failed + d.failed, c.summed + d.summed, c.since}
}

func (c column) total() int { return c.allowed + c.denied + c.logOnly + c.failed }

// timeline counts calls over time in a bounded number of columns: as the log gets longer they get wider.
type timeline struct {
	width   int              // index in widths
	columns map[int64]column // by time in seconds since 1970, divided by the width
}

func (t *timeline) add(e *audit.Event) {
	if t.columns == nil {
		t.columns = map[int64]column{}
	}
	at, begin := t.index(e.Time.Unix()), t.index(e.Begin().Unix())
	before, known := t.columns[begin] // a summary reaches from there
	t.columns[begin] = before
	if at != begin {
		_, wasKnown := t.columns[at]
		known = known && wasKnown
	}
	var c column
	n := int(e.Count()) // #nosec G115 -- bounded
	switch d := query.Decision(e); {
	case d == query.DecisionDeny:
		c.denied += n
	case d == query.DecisionLogOnly:
		c.logOnly += n
	case e.Outcome != nil && (e.Outcome.Result == audit.ResultError || e.Outcome.Result == audit.ResultPanic || e.Outcome.Result == audit.ResultRejected || e.Outcome.Result == audit.ResultOrphaned):
		c.failed += n
	default:
		c.allowed += n
	}
	if at != begin {
		c.summed, c.since = n, e.Begin().Unix()
	}
	t.columns[at] = t.columns[at].with(c)
	for !known && t.reach() > maxBuckets && t.width+1 < len(widths) {
		t.widen()
	}
}

func (t *timeline) index(seconds int64) int64 {
	return floor(seconds, int64(widths[t.width]/time.Second))
}

// reach is how many columns there are between the first and the last.
func (t *timeline) reach() int64 {
	first, last := t.ends()
	return last - first + 1
}

func (t *timeline) ends() (first, last int64) {
	begun := false
	for at := range t.columns {
		if !begun {
			first, last, begun = at, at, true
		}
		first, last = min(first, at), max(last, at)
	}
	return first, last
}

func (t *timeline) widen() {
	times := int64(widths[t.width+1] / widths[t.width])
	t.width++
	wider := map[int64]column{}
	for at, c := range t.columns {
		to := floor(at, times)
		wider[to] = wider[to].with(c)
	}
	t.columns = wider
}

func floor(a, b int64) int64 {
	if a < 0 && a%b != 0 {
		return a/b - 1
	}
	return a / b
}
