package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// Numbers of events in the Windows event log. Administrators filter by them: they keep their meaning.
const (
	eventStarting     = 100
	eventServing      = 101
	eventStopped      = 102
	eventFault        = 103
	eventProgram      = 104
	eventReloaded     = 110
	eventReloadFailed = 111
	eventNeedsRestart = 112
	eventDenyAll      = 113
	eventStuck        = 120
	// 121 and 122 are package watch's: a pipe's name leads elsewhere, an unguarded pipe.
	eventBundle            = 130
	eventAuditFault        = 150
	eventAuditBack         = 151
	eventAuditContradicted = 152
	eventAuditClock        = 153
	// From 200 on, records and checkpoints that are copied: package copies.
	eventOther = 199 // any other line at level error
)

// event marks a log line for the event log.
func event(id uint32) zap.Field { return zap.Uint32(logkeys.Event, id) }

// otherInterval is how often one message without a number of its own is written to the event log, which has little room.
const otherInterval = time.Minute

// eventCore writes the few lines to the event log that an administrator should see even if they read no other log.
type eventCore struct {
	log    winsvc.EventLog
	fields []zapcore.Field
	shared *eventTimes
}

type eventTimes struct {
	mu   sync.Mutex // guards last
	last map[string]time.Time
}

func newEventCore(log winsvc.EventLog) *eventCore {
	return &eventCore{log: log, shared: &eventTimes{last: map[string]time.Time{}}}
}

// Enabled implements zapcore.LevelEnabler.
func (*eventCore) Enabled(level zapcore.Level) bool { return level >= zapcore.InfoLevel }

// With implements zapcore.Core.
func (c *eventCore) With(fields []zapcore.Field) zapcore.Core {
	return &eventCore{log: c.log, fields: slices.Concat(c.fields, fields), shared: c.shared}
}

// Check implements zapcore.Core.
func (c *eventCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c *eventCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	id := uint32(0)
	encoder := zapcore.NewMapObjectEncoder()
	for _, f := range slices.Concat(c.fields, fields) {
		if f.Key == logkeys.Event && f.Type == zapcore.Uint32Type {
			id = uint32(f.Integer) // #nosec G115 -- of event
			continue
		}
		f.AddTo(encoder)
	}
	if id == 0 {
		if e.Level < zapcore.ErrorLevel || !c.shared.mayWrite(e) {
			return nil
		}
		id = eventOther
	}
	return c.report(e.Level, id, eventText(e.Message, encoder.Fields))
}

func (c *eventCore) report(level zapcore.Level, id uint32, text string) error {
	switch {
	case level >= zapcore.ErrorLevel:
		return c.log.Error(id, text)
	case level == zapcore.WarnLevel:
		return c.log.Warning(id, text)
	}
	return c.log.Info(id, text)
}

// mayWrite lets one line a minute of each message pass. Messages are constants of this program, so few are remembered.
func (t *eventTimes) mayWrite(e zapcore.Entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Time.Sub(t.last[e.Message]) < otherInterval {
		return false
	}
	t.last[e.Message] = e.Time
	return true
}

// maxEvent is the length at which an event's text is cut: Windows takes 31,839 characters.
const maxEvent = 30_000

// eventText is the message and its fields, one per line. A NUL would end the text early for Windows.
func eventText(message string, fields map[string]any) string {
	var b strings.Builder
	b.WriteString(message)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&b, "\r\n%s: %v", key, fields[key])
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(b.String(), "?"), "\x00", "?")
	return text[:min(len(text), maxEvent)]
}

// Sync implements zapcore.Core.
func (*eventCore) Sync() error { return nil }
