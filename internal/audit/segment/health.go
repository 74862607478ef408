package segment

import (
	"errors"
	"fmt"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// The log says in one place how it is: Stats.Err is why it takes no records of further operations, and Stats.Unsigned why it is not signed. OnFault is
// told when that changes, and of nil when both are well again.

// notes changes what ails the log, and tells of it. l.mu must not be held.
func (l *log) notes(change func(*Stats)) {
	l.mu.Lock()
	err, unsigned := l.stats.Err, l.stats.Unsigned
	change(&l.stats)
	now := &l.stats
	var told []error
	if now.Err != nil && (err == nil || err.Error() != now.Err.Error()) {
		told = append(told, now.Err)
	}
	if now.Unsigned != nil && unsigned == nil {
		told = append(told, now.Unsigned)
	}
	isWell := (err != nil || unsigned != nil) && now.Err == nil && now.Unsigned == nil
	l.mu.Unlock()
	for _, err := range told {
		l.options.OnFault(err)
	}
	if isWell {
		l.options.OnFault(nil)
	}
}

// setFull notes whether there is room for the records of one more operation. The owner of the log calls it.
func (l *log) setFull(err error) {
	if err != nil && !errors.Is(err, ErrFull) {
		err = errors.Join(ErrFull, err)
	}
	if (l.full == nil) != (err == nil) {
		l.full = err
		l.notes(func(s *Stats) { s.Err = l.ails() })
	}
}

// ails is why no operation can be recorded.
func (l *log) ails() error {
	if l.err != nil {
		return l.err
	}
	return l.full
}

// setSigned notes how the last attempt to sign went.
func (l *log) setSigned(err error) {
	if err != nil {
		err = fmt.Errorf("sign audit log: %w", err)
	}
	l.notes(func(s *Stats) { s.Unsigned = err })
}

// lookForRoom finds out whether one more operation could be recorded, so that a full disk shows before a call is refused, and that it is no
// longer full before one is tried.
func (l *log) lookForRoom() {
	if l.file == nil {
		return
	}
	l.setFull(l.grow(l.at.bytes + always + forStart + perOperation*int64(len(l.open)+1) + audit.MaxRecord))
}
