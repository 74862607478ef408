package query

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

// Changed ends FollowVerified: a verification found that the log was changed, and found it again.
type Changed struct{ Problem string }

func (c *Changed) Error() string { return "the log was changed: " + c.Problem }

// Unsigned comes from FollowVerified when records wait for a signature for longer than their writer takes, and again while they become more.
type Unsigned struct{ First, Last uint64 }

func (u *Unsigned) Error() string {
	return fmt.Sprintf("records %d to %d are there and not signed, so they are not shown: their writer was killed, or does not sign", u.First, u.Last)
}

// How long what FollowVerified finds must last before it is told.
const (
	lastingFault    = 2 * time.Second  // a segment is begun before it is signed, and removed while it is listed
	lastingUnsigned = 10 * time.Second // a writer signs each second
)

// FollowVerified returns the records of a directory behind a Position as they are signed, until ctx is done: of a log that is followed by Follow nothing is
// proven. It looks each interval, at most a tenth of the time, and verifies what was not verified yet as o says.
func FollowVerified(ctx context.Context, dir string, o evidence.VerifyOptions, after evidence.Position, interval time.Duration) iter.Seq2[Record, error] {
	return following(ctx, func(t teller) error {
		return (&verifiedFollower{teller: t, dir: dir, o: o, at: after, last: after.Last(), interval: interval}).run()
	})
}

type verifiedFollower struct {
	teller
	dir      string
	o        evidence.VerifyOptions
	at       evidence.Position
	last     uint64         // the record that was returned last
	passed   map[string]int // the line of it, by its file
	interval time.Duration

	seen     string // what the directory held at the last look
	fault    error  // that the last look found, since when, and that it is one of the whole log and lasts
	since    time.Time
	isSure   bool
	isAgain  bool        // the next look is at the whole log
	info     os.FileInfo // of the directory
	unsigned uint64      // the last record of those that are not signed, and since when there are any
	waiting  time.Time
	told     uint64
}

func (f *verifiedFollower) run() error {
	err := f.tell(Record{}, ErrEnd)
	for err == nil {
		begun := time.Now()
		if err = f.look(); err == nil {
			err = f.wait(max(f.interval, 9*time.Since(begun)))
		}
	}
	return err
}

// look returns what was signed since the last one.
func (f *verifiedFollower) look() error {
	info, err := os.Stat(f.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Changed{"its directory is gone"}
	case err != nil:
		return err
	case f.info != nil && !os.SameFile(info, f.info):
		return &Changed{"its directory is another one than before"}
	}
	f.info = info
	seen, err := contents(f.dir)
	if err != nil {
		return err
	}
	if seen != f.seen || f.fault != nil {
		if err := f.verify(); err != nil {
			return err
		}
		f.seen = seen
	}
	switch now := time.Now(); {
	case f.isSure && !errors.As(f.fault, new(*Changed)): // such as a file that cannot be read
		return &Changed{fmt.Sprintf("it cannot be verified any more: %v", f.fault)}
	case f.isSure:
		return f.fault
	case f.unsigned > f.told && now.Sub(f.waiting) >= lastingUnsigned:
		f.told, f.waiting = f.unsigned, now
		return f.tell(Record{}, &Unsigned{f.last + 1, f.unsigned})
	}
	return nil
}

// verify verifies the records behind the position, and returns those that are signed. A fault is told when it lasts.
func (f *verifiedFollower) verify() error {
	o := f.o
	o.After, o.Again, o.Hold = f.at, f.isAgain, true
	source, err := OpenVerified(f.ctx, []string{f.dir}, nil, o)
	if err == nil {
		err = f.read(source.logs[0])
	}
	switch {
	case errors.Is(err, errStopped) || f.ctx.Err() != nil:
		return errStopped
	case err != nil && f.fault == nil:
		f.since = time.Now()
	case err != nil && time.Since(f.since) >= lastingFault:
		f.isSure, f.isAgain = f.isAgain, true
	}
	if f.fault = err; err == nil {
		f.isAgain = false
	}
	return nil
}

func (f *verifiedFollower) read(l *Log) error {
	r := l.Report
	if r.Fault != nil {
		return &Changed{r.Fault.Error()}
	}
	signed := r.Position.Last()
	switch {
	case r.LastSeq < f.last, signed > 0 && signed < f.last:
		return &Changed{fmt.Sprintf("records up to %d were signed, and now those up to %d are", f.last, signed)}
	case signed <= f.last:
		f.note(r.LastSeq)
		return nil
	}
	var failed error
	l.passed = f.passed
	l.read(f.ctx, nil, func(record Record, err error) bool {
		switch {
		case failed != nil:
		case err != nil: // what fits its signatures and is no record does not count, as the log says
			if !errors.As(err, new(*BadLine)) {
				failed = err
			}
		case record.Seq <= f.last || record.Seq > signed:
		case !r.Holds(record.Seq, evidence.Leaf(record.Raw)): // it was changed since it was verified: another look decides
			failed = &Changed{NotTheSame}
		default:
			record.Missing = record.Seq - f.last - 1
			f.last, f.passed = record.Seq, map[string]int{record.File: record.Line}
			failed = f.tell(record, nil)
		}
		return failed == nil
	})
	switch {
	case failed != nil:
		return failed
	case f.ctx.Err() != nil:
		return errStopped
	case !l.isAll || l.sum != r.Read || f.last != signed:
		return &Changed{NotTheSame}
	}
	f.at = r.Position
	f.note(r.LastSeq)
	return nil
}

// note remembers since when there are records that are not signed.
func (f *verifiedFollower) note(last uint64) {
	switch {
	case last <= f.last:
		f.unsigned = 0
	case f.unsigned <= f.last: // those that waited before are signed
		f.unsigned, f.waiting = last, time.Now()
	default:
		f.unsigned = last
	}
}

// contents tells one state of a directory from another: the names of its files, their lengths and times.
func contents(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var sum evidence.Sum
	for _, e := range entries {
		info, err := e.Info()
		if err != nil { // it was removed since
			continue
		}
		sum.Add(evidence.Leaf(fmt.Appendf(nil, "%s %d %d", e.Name(), info.Size(), info.ModTime().UnixNano())))
	}
	return fmt.Sprint(sum), nil
}
