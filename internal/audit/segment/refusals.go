package segment

import "github.com/pipeguard/pipeguard/internal/audit"

// Callers who may do nothing can cause as many refusals as they like. Refusals therefore have a part of the log of their own, and
// neither fill the disk nor push out what was recorded before.

// refusalPart is how much of the kept log refusals may take, in bytes.
func (o *Options) refusalPart() int64 { return o.KeepBytes / 8 }

// ownRefusals is how much of that is for records of single refusals; the rest is left to summaries.
func (o *Options) ownRefusals() int64 { return o.refusalPart() / 4 * 3 }

// roomForCalls is how much disk space must be left for the records of admitted calls when a refusal is written, in bytes. With segments
// of 64 MiB it is 16 MiB, which is enough for some ten thousand calls.
func (o *Options) roomForCalls() int64 { return o.SegmentBytes / 4 }

// admitRefusals returns the batch without those refusals for which there is no room beside kept bytes, and refuses these.
func (l *log) admitRefusals(batch []*pending, kept int64) []*pending {
	ahead, wanted := int64(0), kept
	for _, p := range batch {
		switch size := int64(len(p.line)); {
		case !p.event.IsRefusal():
			ahead += size
			if p.isIntent() {
				ahead += perOperation
			}
		case l.hasPart(p, wanted-kept):
			wanted += size
		}
	}
	fits := wanted == kept || l.grow(wanted+ahead+l.options.roomForCalls()) == nil
	taken, out := int64(0), batch[:0:len(batch)]
	for _, p := range batch {
		if p.event.IsRefusal() {
			if !fits || !l.hasPart(p, taken) {
				l.refuse(p, ErrRefusals)
				continue
			}
			taken += int64(len(p.line))
		}
		out = append(out, p)
	}
	return out
}

// hasPart says whether a refusal fits into the part of the kept log that belongs to refusals, behind taken bytes of its batch.
func (l *log) hasPart(p *pending, taken int64) bool {
	if l.options.KeepBytes == 0 {
		return true
	}
	most := l.options.ownRefusals()
	if p.event.Stage == audit.StageSummary {
		most = l.options.refusalPart()
	}
	return l.refused+l.at.refused+taken+int64(len(p.line)) <= most
}

func refusedBytes(batch []*pending) (n int64) {
	for _, p := range batch {
		if p.event.IsRefusal() {
			n += int64(len(p.line))
		}
	}
	return n
}

// weighRefusals finds how much of each segment refusals take. Records of calls that were admitted are told by their beginning.
func (f *Found) weighRefusals() error {
	for i := range f.parts {
		p := &f.parts[i]
		err := p.lines(f.disk, func(line []byte, _ int64) bool {
			h, ok := parseHead(line)
			if !ok || h.intentSeq != 0 || h.kind == string(audit.TypeLog) || h.stage == string(audit.StageRequestReceived) {
				return true
			}
			if e, err := audit.Parse(line); err == nil && e.IsRefusal() {
				p.refused += int64(len(line)) + 1
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}
