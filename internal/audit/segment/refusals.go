package segment

import (
	"context"
	"fmt"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Callers who may do nothing can cause as many refusals as they like. Refusals therefore have a part of the log of their own, and
// neither fill the disk nor push out what was recorded before. Half of that part is for callers that rules name, so that strangers, who have no other
// use for it, do not take it from them.

// class says which kind of caller or event a record belongs to, where the record does not say it itself.
type class int

const (
	asRecorded class = iota // audit.Event.IsRefusal says whether it is a refusal
	ofStranger              // a refusal of a caller that no rule names
	ofAct                   // no refusal: something was admitted on this connection, however it ended
)

type classKey struct{}

// OfStranger returns a context under which Append treats a refusal as one of a caller that no rule names.
func OfStranger(ctx context.Context) context.Context {
	return context.WithValue(ctx, classKey{}, ofStranger)
}

// OfAct returns a context under which Append does not treat a record as a refusal: a call was admitted on its connection.
func OfAct(ctx context.Context) context.Context {
	return context.WithValue(ctx, classKey{}, ofAct)
}

func (p *pending) isRefusal() bool {
	return p.class == ofStranger || p.class != ofAct && p.event.IsRefusal()
}

// taken is how many bytes refusals take. Who was refused is in no record: of segments that were there at the start all counts as taken by strangers.
type taken struct{ all, strangers int64 }

func (t taken) plus(other taken) taken {
	return taken{t.all + other.all, t.strangers + other.strangers}
}
func (t taken) minus(other taken) taken {
	return taken{t.all - other.all, t.strangers - other.strangers}
}

// add counts a refusal.
func (t *taken) add(p *pending) {
	n := int64(len(p.line))
	t.all += n
	if p.class == ofStranger {
		t.strangers += n
	}
}

// refusalPart is how much of the kept log refusals may take, in bytes.
func (o *Options) refusalPart() int64 { return o.KeepBytes / 8 }

// single is how much of a part is for records of single refusals; the rest is left to summaries.
func single(part int64) int64 { return part / 4 * 3 }

// roomForCalls is how much disk space must be left for the records of admitted calls when a refusal is written, in bytes. With segments
// of 64 MiB it is 16 MiB, which is enough for some ten thousand calls.
func (o *Options) roomForCalls() int64 { return forStart + o.SegmentBytes/4 }

// admitRefusals returns the batch without those refusals for which there is no room beside kept bytes, and refuses these.
func (l *log) admitRefusals(batch []*pending, kept int64) []*pending {
	ahead, wanted := int64(0), taken{}
	for _, p := range batch {
		switch {
		case !p.isRefusal():
			ahead += int64(len(p.line))
			if p.isIntent() {
				ahead += perOperation
			}
		case l.hasPart(p, wanted):
			wanted.add(p)
		}
	}
	fits := wanted.all == 0 || l.grow(kept+wanted.all+ahead+l.options.roomForCalls()) == nil
	took, out := taken{}, batch[:0:len(batch)]
	for _, p := range batch {
		if p.isRefusal() {
			hasPart := l.hasPart(p, took)
			l.tellOfPart(p, hasPart)
			if !fits || !hasPart {
				l.refuse(p, ErrRefusals)
				continue
			}
			took.add(p)
		}
		out = append(out, p)
	}
	return out
}

// hasPart says whether a refusal fits into the part of the kept log that belongs to refusals, behind those of its batch.
func (l *log) hasPart(p *pending, took taken) bool {
	if l.options.KeepBytes == 0 {
		return true
	}
	took.add(p)
	took = took.plus(l.refused).plus(l.at.refused)
	all, strangers := l.options.refusalPart(), l.options.refusalPart()/2
	if p.event.Stage != audit.StageSummary {
		all, strangers = single(all), single(strangers)
	}
	return took.all <= all && (p.class != ofStranger || took.strangers <= strangers)
}

var errNoPart = fmt.Errorf("%w of a caller that a rule names: such refusals are counted, and have summaries when there is room; keepMiB is small for what is refused here", ErrRefusals)

// tellOfPart tells once that what callers are refused that rules name is not recorded, until it is again.
func (l *log) tellOfPart(p *pending, hasPart bool) {
	if p.class == ofStranger || hasPart != l.isWithoutPart || hasPart && p.event.Stage == audit.StageSummary {
		return
	}
	if l.isWithoutPart = !hasPart; l.isWithoutPart {
		l.options.OnFault(errNoPart)
	}
}

func refusedBytes(batch []*pending) (n taken) {
	for _, p := range batch {
		if p.isRefusal() {
			n.add(p)
		}
	}
	return n
}
