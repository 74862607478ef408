package proxy

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// refusalCounter decides which refusals have a record of their own, and counts the others until a summary is written.
type refusalCounter struct {
	budgets budgets

	mu               sync.Mutex // guards the fields below
	named, strangers class
	isTight          bool // the log had no room for the last record of a refusal
}

// class is callers that have budgets of the same kind: those that rules name, or strangers, who have one in common beside their own.
type class struct {
	callers map[caller.Principal]*refused
	kinds   int        // of all callers
	swept   time.Time  // when idle callers were last forgotten
	shared  acl.Bucket // of strangers
}

// refused is a caller that was refused something.
type refused struct {
	records, bytes acl.Bucket
	isSpent        bool // nothing of it is recorded singly until it has been quiet for a while
	kinds          map[refusalKind]*kindOfRefusal
	reasons        map[refusalKind]int // by the kind without its reason
}

// kindOfRefusal is remembered once its first record was written.
type kindOfRefusal struct {
	summary pendingSummary
	due     time.Time
	period  time.Duration
	written time.Time // the last summary
	isTaken bool      // a summary is being written
}

// sweepInterval bounds how often all callers are looked at for the sake of a new one.
const sweepInterval = time.Second

func newRefusalCounter(b budgets) *refusalCounter {
	return &refusalCounter{budgets: b, named: class{callers: map[caller.Principal]*refused{}}, strangers: class{callers: map[caller.Principal]*refused{}}}
}

// refusal is one refusal and the caller that it counts for.
type refusal struct {
	who        caller.Principal
	isStranger bool
	kind       refusalKind
	event      *audit.Event
}

// verdict says whether a refusal has a record of its own.
type verdict struct {
	isCounted bool   // it has no record of its own
	id        string // of the summary that counts it
	isSpent   bool   // the caller has used up its budget
}

func (b *refusalCounter) class(isStranger bool) *class {
	if isStranger {
		return &b.strangers
	}
	return &b.named
}

// enter decides about a refusal, and counts it if it has no record of its own. size is how long that would be, in bytes, and is asked only if need be.
func (b *refusalCounter) enter(r refusal, size func() int) verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	class := b.class(r.isStranger)
	caller := class.caller(r.who, b.budgets, now)
	kind, isNew := caller.kind(class, r.kind)
	if (isNew || !caller.spent(b.budgets, now)) && b.pay(class, caller, r.isStranger, size(), isNew, now) {
		return verdict{}
	}
	b.count(kind, r.event, now)
	return verdict{isCounted: true, id: kind.summary.id, isSpent: caller.isSpent}
}

// turnedAway counts a refusal that was to have a record of its own, and that the log did not take.
func (b *refusalCounter) turnedAway(r refusal, isTight bool) verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isTight = b.isTight || isTight
	now := time.Now()
	class := b.class(r.isStranger)
	caller := class.caller(r.who, b.budgets, now)
	kind, _ := caller.kind(class, r.kind)
	b.count(kind, r.event, now)
	return verdict{isCounted: true, id: kind.summary.id}
}

// alike are refusals that differ in their times alone.
type alike struct {
	refusal
	in *kindOfRefusal // the kind that they are counted in
	id string         // of the summary that knows them already
}

// again counts one more refusal of those that are all alike. All but the first in a summary change no more than its number and its time.
func (b *refusalCounter) again(a *alike) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if a.in != nil && a.in.summary.count > 0 && a.in.summary.id == a.id {
		a.in.summary.count++
		a.in.summary.last.Time = now
		return
	}
	class := b.class(a.isStranger)
	e := *a.event
	e.Time = now
	a.in, _ = class.caller(a.who, b.budgets, now).kind(class, a.kind)
	b.count(a.in, &e, now)
	a.id = a.in.summary.id
}

func (b *refusalCounter) count(k *kindOfRefusal, e *audit.Event, now time.Time) {
	if k.summary.count == 0 {
		if k.period == 0 || now.Sub(k.written) > 2*k.period {
			k.period = b.budgets.period
		}
		k.due = now.Add(k.period)
	}
	k.summary.add(e)
}

// pay takes the cost of a record from the budgets, or says that one of them does not have it. The first record of a kind, and summaries, may overdraw.
func (b *refusalCounter) pay(c *class, caller *refused, isStranger bool, size int, inAnyCase bool, now time.Time) bool {
	n := float64(size)
	own := b.budgets.records.has(&caller.records, 1, inAnyCase, now) && b.budgets.bytes.has(&caller.bytes, n, inAnyCase, now)
	if !own {
		caller.isSpent = true
		return false
	}
	if isStranger && !b.budgets.strangers.has(&c.shared, n, inAnyCase, now) {
		return false
	}
	caller.records.Take(1)
	caller.bytes.Take(n)
	if isStranger {
		c.shared.Take(n)
	}
	return true
}

// caller finds or makes the account of a caller. Those that do not fit share one.
func (c *class) caller(who caller.Principal, b budgets, now time.Time) *refused {
	if found := c.callers[who]; found != nil {
		return found
	}
	if len(c.callers) >= maxRefused {
		if now.Sub(c.swept) >= sweepInterval {
			c.forget(b, now)
		}
		if len(c.callers) >= maxRefused {
			who = caller.Principal{User: "*"} // no account is called so
			if found := c.callers[who]; found != nil {
				return found
			}
		}
	}
	made := &refused{kinds: map[refusalKind]*kindOfRefusal{}, reasons: map[refusalKind]int{}}
	c.callers[who] = made
	return made
}

// kind finds a kind of refusal; isNew says that it is the first of its kind and should have a record. Where too many are told apart, they become one for each pipe and result.
func (r *refused) kind(c *class, of refusalKind) (found *kindOfRefusal, isNew bool) {
	if found = r.kinds[of]; found != nil {
		return found, false
	}
	base := of
	base.reason = ""
	if of.reason != "" && r.reasons[base] >= maxReasons {
		if found = r.kinds[base]; found != nil {
			return found, false
		}
		of = base
	}
	isNew = true
	if c.kinds >= maxKinds || len(r.kinds) >= maxKindsOfCaller {
		of, isNew = of.coarse(), false
		if found = r.kinds[of]; found != nil {
			return found, false
		}
	}
	if of.reason != "" {
		of.reason = strings.Clone(of.reason)
		r.reasons[base]++
	}
	found = &kindOfRefusal{}
	r.kinds[of] = found
	c.kinds++
	return found, isNew
}

// spent says whether the caller has used up its budget. It has one again when half of it is back.
func (r *refused) spent(b budgets, now time.Time) bool {
	if r.isSpent && r.records.Left(b.records.Rate, now) >= b.records.Most/2 && r.bytes.Left(b.bytes.Rate, now) >= b.bytes.Most/8 {
		r.isSpent = false
	}
	return r.isSpent
}

// forget drops callers that have no pending summaries and whose budgets are whole.
func (c *class) forget(b budgets, now time.Time) {
	c.swept = now
	for who, caller := range c.callers {
		idle := b.records.isWhole(&caller.records, now) && b.bytes.isWhole(&caller.bytes, now)
		for _, k := range caller.kinds {
			idle = idle && k.summary.count == 0 && !k.isTaken
		}
		if idle {
			c.kinds -= len(caller.kinds)
			delete(c.callers, who)
		}
	}
}

// isSpent says whether a stranger has used up its budget, so that it is not worth listening to.
func (b *refusalCounter) isSpent(who caller.Principal) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	caller := b.strangers.callers[who]
	return caller != nil && caller.spent(b.budgets, time.Now())
}

// due is a summary to be written.
type due struct {
	summary    pendingSummary
	of         *kindOfRefusal
	isStranger bool
}

// take returns the summaries that are to be written now, or all of them. Each must be given to written or to put back.
func (b *refusalCounter) take(all bool) (list []due) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if all {
		b.named.gather()
		b.strangers.gather()
	}
	for _, isStranger := range []bool{false, true} {
		class := b.class(isStranger)
		for _, caller := range class.callers {
			for _, k := range caller.kinds {
				if k.summary.count == 0 || !all && now.Before(k.due) {
					continue
				}
				if e := k.summary.event(); !all && !b.pay(class, caller, isStranger, sizeOf(&e), true, now) {
					b.postpone(k, now)
					continue
				}
				list = append(list, due{k.summary, k, isStranger})
				k.summary, k.isTaken = pendingSummary{}, true
			}
		}
		if !all {
			class.forget(b.budgets, now)
		}
	}
	return list
}

// gather leaves at most as many summaries as a stop can write quickly. Those of the fewest refusals become one for each pipe and result,
// of all callers together.
func (c *class) gather() {
	var waiting []kindAndSummary
	for _, caller := range c.callers {
		for kind, k := range caller.kinds {
			if k.summary.count > 0 {
				waiting = append(waiting, kindAndSummary{kind, k})
			}
		}
	}
	if len(waiting) <= maxAtStop {
		return
	}
	slices.SortFunc(waiting, func(a, b kindAndSummary) int { return cmp.Compare(b.of.summary.count, a.of.summary.count) })
	into := map[refusalKind]*kindOfRefusal{}
	for _, w := range waiting[maxAtStop:] {
		alike := w.kind.coarse()
		if first := into[alike]; first != nil {
			first.summary.join(&w.of.summary)
			w.of.summary = pendingSummary{}
			continue
		}
		into[alike] = w.of
	}
}

// kindAndSummary is a kind of refusal and what is remembered of it.
type kindAndSummary struct {
	kind refusalKind
	of   *kindOfRefusal
}

// postpone makes a period longer, up to the bound.
func (b *refusalCounter) postpone(k *kindOfRefusal, now time.Time) {
	longest := b.budgets.longest
	if b.isTight {
		longest = b.budgets.tight
	}
	k.period = min(2*max(k.period, b.budgets.period), longest)
	k.due = now.Add(k.period)
}

// written notes that a summary is in the log: the next one of its kind comes later.
func (b *refusalCounter) written(d due) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isTight = false
	now := time.Now()
	d.of.written, d.of.isTaken = now, false
	b.postpone(d.of, now)
}

// putBack has a summary that the log did not take wait for the next period.
func (b *refusalCounter) putBack(d due, isTight bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isTight = b.isTight || isTight
	d.summary.join(&d.of.summary)
	d.of.summary, d.of.isTaken = d.summary, false
	if now := time.Now(); isTight {
		b.postpone(d.of, now)
	} else {
		d.of.due = now.Add(b.budgets.period)
	}
}

// waiting is how many refusals are counted and in no record yet.
func (b *refusalCounter) waiting() (n uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, class := range []*class{&b.named, &b.strangers} {
		for _, caller := range class.callers {
			for _, k := range caller.kinds {
				n += k.summary.count
			}
		}
	}
	return n
}
