package segment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

var errClosed = errors.New("closed")

var errEvidence = errors.New("nothing may be signed about it")

// start reads the log and begins a segment that continues it, with the ends of the intents that earlier processes left open.
func (l *log) start(ctx context.Context) (err error) {
	defer func() {
		if err == nil {
			return
		}
		l.stopPreparing()
		if l.file != nil {
			_ = l.file.Close()
		}
	}()
	disk := untilDone{l.disk, ctx}
	found, err := read(disk, Signed{l.options.Covered, l.options.Fits})
	if err == nil && l.options.KeepBytes > 0 {
		covered := found.Last // without evidence nothing is
		if l.options.Evidence != nil {
			covered = l.options.Covered
		}
		err = found.weighRecords(covered)
	}
	if err != nil {
		return err
	}
	l.tellStrays(disk, found)
	if err := errors.Join(l.tellOverruled(disk, found), ctx.Err()); err != nil {
		return err
	}
	if l.options.Evidence != nil {
		if l.evidence, err = l.options.Evidence(found); err != nil {
			return fmt.Errorf("evidence of the audit log: %w", err)
		}
		if size, _, err := l.evidence.Root(); err != nil || size != found.Last {
			return fmt.Errorf("evidence of the audit log has %d records, and the log %d: %w", size, found.Last, errors.Join(err, errEvidence))
		}
	}
	l.goOnRemoving(found)
	l.seq, l.leaf, l.lastSession, l.fault = found.Last, found.leaf, found.Session, found.fault
	if l.fault == "" && found.Last == 0 && l.options.Missing > 0 {
		l.fault = fmt.Sprintf("the key has signed a log of %d records, and none of them is here", l.options.Missing)
	}
	if l.evidence != nil {
		l.unsigned = found.Last - min(found.Last, l.options.Covered)
	}
	l.empty = found.named
	l.declare(found.void...)
	if n := len(found.parts); n > 0 {
		l.at = found.parts[n-1]
		l.at.ended = l.options.Now()
		found.parts[n-1] = l.at
		l.parts = found.parts
		for i := range l.parts {
			p := &l.parts[i]
			p.held = l.weigh(p)
			p.added = min(p.added, p.held)
			p.echoed = min(p.echoed, p.held-p.added)
			l.held, l.refused, l.added = l.held+p.held, l.refused.plus(p.refused), l.added+p.added
			l.echoed += p.echoed
		}
		if l.unsigned > 0 && l.added > l.options.refusalPart() {
			then := "No signed records are removed for them"
			if l.added > l.options.KeepBytes {
				then = "They take more than the size that is kept, so older records are removed"
			}
			l.options.OnFault(fmt.Errorf("the audit log goes on from %d records that no checkpoint covers, and such records take %d bytes of it: far more than a kill leaves. %s; look at who can write to its directory", l.unsigned, l.added, then))
		}
		// A process that was killed leaves records that only the kernel has. What the log goes on from must not vanish with the power.
		if err := l.disk.Flush(l.at.name); err != nil {
			return fmt.Errorf("flush audit segment %s: %w", l.at.name, err)
		}
		_ = l.disk.Release(l.at.name)
	}
	for _, name := range l.void {
		_ = l.disk.Release(name)
	}
	orphans, err := l.orphans(found.orphans)
	if err != nil {
		return err
	}
	n := batchLen(orphans) // all of them have their room, or begin fails
	if _, err = l.begin(orphans[:n:n], len(orphans)); err != nil {
		return err
	}
	for rest := orphans[n:]; len(rest) > 0; rest = rest[n:] {
		n = batchLen(rest)
		if err := l.write(rest[:n]); err != nil {
			return err
		}
	}
	l.prune()
	if l.file == nil {
		return fmt.Errorf("%w: %s", ErrUnavailable, l.fault)
	}
	l.up()
	if l.evidence != nil { // existing records are signed before new ones, and a start is visible
		if err := l.evidence.Checkpoint(context.Background()); err != nil {
			if found.sealed { // the next start would go on from the end that was signed, and leave out whatever stands behind
				return l.abandon(fmt.Errorf("sign the start of the audit log: %w", err))
			}
			l.setSigned(err)
			l.dirty.Store(true)
		} else {
			l.dirty.Store(false)
		}
	}
	return nil
}

// goOnRemoving takes segments off the log that the last process was about to remove. No checkpoint can be compared with their records any more.
func (l *log) goOnRemoving(found *Found) {
	if l.evidence == nil {
		return
	}
	for last := l.evidence.Removed(); len(found.parts) > 1 && found.parts[0].last <= last; found.parts = found.parts[1:] {
		l.going, l.isHeld = append(l.going, found.parts[0].name), true
	}
}

// abandon removes the segment of a failed start, which no checkpoint covers, and returns the error.
func (l *log) abandon(err error) error {
	err = errors.Join(err, l.file.Close(), l.disk.Remove(l.at.name))
	l.file = nil
	return err
}

// tellOverruled names unsigned segments which say that the log ends before a record that continues it. A write that failed leads to one, and so does an attacker who
// wants the last records out of the log: the start cannot tell, and takes the segment over.
func (l *log) tellOverruled(disk Disk, found *Found) error {
	for i := 1; i < len(found.parts); i++ {
		p, before := &found.parts[i], &found.parts[i-1]
		g := p.opening.Log
		if p.first <= l.options.Covered || g == nil || g.PreviousSegment != before.name || before.size <= before.bytes {
			continue
		}
		err := readFile(disk, before.name, func(r io.Reader, _ int64) error {
			if err := discard(r, before.bytes); err != nil {
				return err
			}
			return Scan(io.LimitReader(r, 2*audit.MaxRecord), func(line []byte, _ int64) bool {
				if seq, prev, ok := ParseLine(line); ok && seq == p.first && prev == p.opening.Prev {
					l.options.OnFault(fmt.Errorf("audit segment %s, which was not signed, says that the log ends before record %d of %s, which continues it: a write failed there, or an attacker added %[1]s to take "+
						"that record and those behind it out of the log. Copy the directory for a reviewer", p.name, seq, before.name))
				}
				return false
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// strays reports entries of the directory of a log that are not part of it.
type strays struct {
	tell func(error)
	n    int // of a kind
}

func (s *strays) say(name, why string) {
	s.tell(fmt.Errorf("in the directory of the audit log, and left out: %s: %s. Copy the directory for a reviewer before you move it away, and look at who put that there", name, why))
}

// add reports one, unless maxVoid of its kind were reported.
func (s *strays) add(name, why string) {
	if s.n++; s.n <= maxVoid {
		s.say(name, why)
	}
}

// end says how many more of a kind there are.
func (s *strays) end(why string) {
	if more := s.n - maxVoid; more > 0 {
		s.say(fmt.Sprintf("and %d more", more), why)
	}
	s.n = 0
}

// tellStrays reports entries of the directory that are not part of the log. The log goes on without them; a verification names them too.
func (l *log) tellStrays(disk untilDone, found *Found) {
	s := &strays{tell: l.options.OnFault}
	for _, name := range found.aside {
		why := "the segments that the last checkpoint was signed of do not lead to it, or it says of them or holds what no writer leaves: it was added, or something behind that checkpoint was changed"
		if err := found.misfit[name]; err != nil {
			why = fmt.Sprintf("its first record does not open a segment of this log: %v", err)
		}
		s.add(name, why)
	}
	s.end("they are not segments of this log")
	for _, name := range found.behind {
		s.add(name, "it follows on a log that was closed in order and signed: it was added, or a start that was killed at once left it")
	}
	s.end("they follow on a log that was closed in order and signed")
	tellVoid(found, s)
	tellChanged(disk, found, s)
	s.end("they were declared void before, and were changed since")
	if found.fault != "" {
		l.options.OnFault(errors.New("audit log: " + found.fault))
	}
	if d, ok := l.disk.(*directory); ok {
		segments, others, err := List(d.path)
		if err != nil {
			l.options.OnFault(err)
		}
		for _, e := range segments {
			if filepath.Base(e.Path) != e.Given {
				others = append(others, Stray{Path: e.Path, Why: "it is a packed copy, which the proxy does not make"})
			}
		}
		for _, o := range others {
			s.add(o.Path, o.Why)
		}
		s.end("they are not files of a log")
	}
}

// again is more than a record grows by when it is written once more.
const again = 64

// orphans are the records that end open intents. Each repeats the content of its intent.
func (l *log) orphans(intents []audit.Event) ([]*pending, error) {
	var out []*pending
	for _, e := range intents {
		p := &pending{event: audit.Event{
			Type: audit.TypeRequest, Stage: audit.StageOrphaned, ID: e.ID, IntentSeq: e.Seq,
			Who: e.Who, What: e.What, Decision: e.Decision, Corr: e.Corr, Where: e.Where,
			Outcome: &audit.Outcome{Result: audit.ResultOrphaned, Code: "Unknown", Error: "the process ended before the operation was recorded to have"},
		}}
		if err := p.encode(l.session, l.options.Now); err != nil {
			return nil, err
		}
		l.open[e.ID] = e.Seq
		p.echo = l.options.Evidence != nil && e.Seq > l.options.Covered
		p.room = 2 * int64(len(p.line)+again) // the same once more should a flush fail
		l.orphaned += p.room
		out = append(out, p)
	}
	return out, nil
}

// look does the periodic work, for the keeper.
func (l *log) look() {
	if l.file == nil || !l.isHere() {
		l.commit(nil) // which says when the log works again, even when there are no calls
	}
	l.lookForRoom()
	if l.file != nil && l.due(0) == audit.CauseAge {
		l.commit(nil)
	}
	interval := pruneInterval
	if l.full != nil || len(l.going) > 0 {
		interval = fullInterval
	}
	if time.Since(l.looked) >= interval {
		l.prune()
	}
}

// close ends the log in order.
func (l *log) close() error {
	for l.stopPreparing() { // what evidence does without already is removed, or nothing would hold it
		l.prune()
	}
	var err error
	l.isLast = true
	if l.file != nil {
		if err = l.end(); err != nil {
			l.poison(err)
		}
	}
	if l.file == nil { // so that it is known which of the last records count
		if _, err = l.begin(nil, 0); err == nil {
			err = l.end()
		}
	}
	if l.file != nil {
		err = errors.Join(err, l.file.Close(), l.disk.Release(l.at.name))
		l.file = nil
	}
	if l.evidence != nil {
		err = errors.Join(err, l.evidence.Checkpoint(context.Background()))
	}
	l.count(func(s *Stats) { s.Err = errClosed })
	return errors.Join(err, l.disk.Close())
}

// When a log is signed, by Options.SignEvery. Sessions may be short: a process that is killed as soon as it has begun to write should leave as
// little unsigned as one that ran for a day.
const (
	idle  = 60 // times of it: how often a log that nothing is written to is signed, so that a rollback shows even then
	youth = 5  // times of it: how long a session is young
	young = 20 // how often a young session is signed in one of it, if there is something new
)

// sign keeps checkpoints until ctx is done: every SignEvery when there is something new, sooner in a young session, and later otherwise.
func (l *log) sign(ctx context.Context) {
	if l.evidence == nil {
		return
	}
	every := l.options.SignEvery
	clock := time.NewTicker(every)
	defer clock.Stop()
	for began, signed := time.Now(), time.Now(); ; {
		early := l.early
		if time.Since(began) >= youth*every {
			early = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
		case <-early:
			if !periodic.Sleep(ctx, every/young) { // what comes now goes with it
				return
			}
		}
		if dirty := l.dirty.Swap(false); !dirty && time.Since(signed) < idle*every {
			continue
		}
		if err := l.evidence.Checkpoint(ctx); err != nil && ctx.Err() == nil {
			l.dirty.Store(true)
			l.setSigned(err)
			continue
		}
		l.setSigned(nil)
		signed = time.Now()
	}
}
