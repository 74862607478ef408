package segment

import (
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// pruneInterval is how often segments are looked at for their age.
const pruneInterval = time.Minute

// fullInterval is how often that is done while the disk is full, or what is said to be removed is still there: nothing may have been removed for want of
// room, for an operation under way, or for a reader of the file.
const fullInterval = 5 * time.Second

// maxPruned bounds how many segments one record names.
const maxPruned = 16

// prune removes the oldest segments that are too old or too much, as long as no operation under way began in them, and says so in a
// record that is durable before.
func (l *log) prune() {
	l.looked = time.Now()
	for err := l.finishRemoving(); l.file != nil; {
		if err != nil {
			l.setPruned(err)
			return
		}
		parts, reason := l.excess()
		if len(parts) == 0 {
			l.setPruned(nil)
			return
		}
		if !l.isPrepared(&parts) {
			return
		}
		err = l.remove(parts, reason)
	}
}

// excess returns the segments to remove next, and why. Segments that are kept only for an operation under way are noted.
func (l *log) excess() (parts []part, reason string) {
	oldest := l.seq + 1
	for _, seq := range l.open {
		oldest = min(oldest, seq)
	}
	// An attacker who can write to the directory can add records while the proxy is stopped. They do not count, up to the size that is kept.
	added := l.added
	total, refused := l.at.bytes-l.at.echoed+l.held-l.echoed, l.at.refused.all+l.refused.all
	var overdue uint64
	for i := range l.parts {
		p := &l.parts[i]
		why, own := "", total-min(added, l.options.KeepBytes)
		switch {
		case l.options.KeepBytes > 0 && (own > l.options.KeepBytes || own-refused > l.options.KeepBytes-l.options.refusalPart()):
			why = audit.CauseSize
		case l.options.KeepAge > 0 && !p.ended.IsZero() && l.options.Now().Sub(p.ended) > l.options.KeepAge:
			why = audit.CauseAge
		}
		isKept := p.last >= oldest // and so is all that comes behind it
		if why == "" || !isKept && (len(parts) == maxPruned || reason != "" && why != reason) {
			break
		}
		total, refused, added = total-p.held+p.echoed, refused-p.refused.all, added-p.added
		if isKept {
			overdue = p.last
			continue
		}
		parts, reason = append(parts, *p), why
	}
	l.count(func(s *Stats) { s.Overdue = overdue })
	return parts, reason
}

// weigh is how much of the disk the records of a closed segment take. What stands behind them, and a hole among them, is not the log's: neither may
// cost it its oldest records.
func (l *log) weigh(p *part) int64 {
	n := p.bytes
	if d, ok := l.disk.(interface {
		Allocated(name string) (int64, error)
	}); ok {
		if taken, err := d.Allocated(p.name); err == nil {
			n = min(n, taken)
		}
	}
	return max(0, n)
}

// remove writes a durable record that names the files, and removes them.
func (l *log) remove(parts []part, reason string) error {
	last := parts[len(parts)-1].last
	pruned := &audit.Pruned{FirstSeq: parts[0].first, LastSeq: last, TreeSize: l.seq, Reason: reason}
	for _, p := range parts {
		pruned.Segments = append(pruned.Segments, p.name)
	}
	var empty []declared
	for _, d := range l.empty {
		if d.by <= last && len(pruned.Segments) < 2*maxPruned {
			pruned.Segments = append(pruned.Segments, d.name)
		} else {
			empty = append(empty, d)
		}
	}
	if l.evidence != nil {
		size, root, err := l.evidence.Root()
		if err != nil {
			return err
		}
		pruned.TreeSize, pruned.Root = size, base64.StdEncoding.EncodeToString(root[:])
	}
	record, err := l.own(audit.StageLogPrune, &audit.Log{Pruned: pruned})
	if err != nil {
		return err
	}
	// Removing makes room, so on a full disk this record may take of what is always kept.
	needed := l.at.bytes + int64(len(record.line)) + l.roomForEnds()
	if err := l.grow(needed + always); err != nil && l.allocated < needed {
		return err
	}
	if err := l.write([]*pending{record}); err != nil {
		l.poison(err)
		return err
	}
	for _, p := range parts {
		l.held, l.refused, l.added = l.held-p.held, l.refused.minus(p.refused), l.added-p.added
		l.echoed -= p.echoed
	}
	l.parts, l.empty, l.going, l.isHeld = l.parts[len(parts):], empty, pruned.Segments, l.evidence == nil
	l.count(func(s *Stats) { s.Pruned += uint64(len(parts)) })
	return l.finishRemoving()
}

// finishRemoving removes the files that the log names as removed, once a checkpoint covers the record that says so: without one, any account that can
// write to the directory could have written it. A file that another process has open may stay for a while: Windows does not remove it.
func (l *log) finishRemoving() error {
	if len(l.going) > 0 && !l.isHeld {
		if err := l.evidence.Checkpoint(context.Background()); err != nil {
			return err
		}
		l.isHeld = true
	}
	for len(l.going) > 0 {
		if err := l.disk.Remove(l.going[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		l.going = l.going[1:]
	}
	return nil
}
