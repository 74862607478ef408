package hunt

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Bounds of what a correlation remembers: callers choose what is grouped by.
const (
	maxCount  = 1000
	maxGroups = 10_000
)

// burst finds so many records of one group within a time.
type burst struct {
	of     []string // names of rules
	by     []string // fields
	span   time.Duration
	count  int
	groups map[string][]time.Time // the last times of each group
	lost   int                    // groups that were forgotten for want of room
	swept  time.Time              // when all groups were last looked at for want of room, by the records' clock
}

// add takes a record that stands for n and says whether its group is full. A group that was full begins anew.
func (b *burst) add(f Fields, n int, at time.Time) bool {
	key := ""
	for _, name := range b.by {
		key += fmt.Sprintf("%q", f.first(name))
	}
	if _, known := b.groups[key]; !known && len(b.groups) >= maxGroups {
		b.sweep(at)
	}
	times := b.groups[key]
	for range min(n, b.count) {
		times = append(times, at)
	}
	for len(times) > 0 && at.Sub(times[0]) > b.span {
		times = times[1:]
	}
	if len(times) >= b.count {
		delete(b.groups, key)
		return true
	}
	b.groups[key] = times
	return false
}

// countOf is how many requests a record stands for, or maxCount if it is more: no correlation asks for more.
func countOf(doc []byte) int {
	e, err := audit.Parse(doc)
	if err != nil && json.Unmarshal(doc, &e) != nil { // a rule may be asked of what is no record
		return 1
	}
	return int(min(e.Count(), maxCount)) // #nosec G115 -- bounded
}

// sweep makes room: of what is over, and if that is too little, of anything. All groups are looked at no more often than 16 times in a span: a log of
// many callers asks for room with each record.
func (b *burst) sweep(now time.Time) {
	if b.swept.IsZero() || now.Sub(b.swept).Abs() >= b.span/16 {
		b.swept = now
		for key, times := range b.groups {
			if now.Sub(times[len(times)-1]) > b.span {
				delete(b.groups, key)
			}
		}
	}
	for key := range b.groups {
		if len(b.groups) < maxGroups {
			return
		}
		delete(b.groups, key)
		b.lost++
	}
}
