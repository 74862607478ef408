package segment

import (
	"context"
)

// preparation is evidence preparing for the removal of the oldest records. It reads them all, while no caller waits.
type preparation struct {
	last uint64
	stop context.CancelFunc
}

// isPrepared cuts parts to those that evidence can go on without, and says whether there are any. If there are none it begins to prepare for them.
func (l *log) isPrepared(parts *[]part) bool {
	if l.evidence == nil {
		return true
	}
	n := 0
	for n < len(*parts) && (*parts)[n].last <= l.prepared {
		n++
	}
	if n > 0 {
		*parts = (*parts)[:n]
		return true
	}
	if l.preparing == nil {
		ctx, stop := context.WithCancel(context.Background())
		p := &preparation{last: (*parts)[len(*parts)-1].last, stop: stop}
		l.preparing = p
		go func() { l.ready <- l.evidence.Prune(ctx, p.last) }()
	}
	return false
}

// goOn continues the removal with the result of the preparation.
func (l *log) goOn(err error) {
	p := l.preparing
	p.stop()
	if l.preparing = nil; err != nil {
		l.setPruned(err) // tried again at the next interval
		return
	}
	l.prepared = p.last
	l.prune()
}

// stopPreparing waits for evidence to give up, and says whether it became ready before it could.
func (l *log) stopPreparing() bool {
	p := l.preparing
	if p == nil {
		return false
	}
	p.stop()
	err := <-l.ready
	if l.preparing = nil; err == nil {
		l.prepared = p.last
	}
	return err == nil
}
