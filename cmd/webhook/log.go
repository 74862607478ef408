package main

import (
	"io"
	stdlog "log"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/logkeys"
)

// newLog writes diagnostics as lines of JSON.
func newLog(level zapcore.Level, w io.Writer) *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoding), zapcore.Lock(inert.Lines(w)), level))
}

const (
	// linesAtOnce of the same message are written within linesTime; of more, the next line that is written tells the number.
	linesAtOnce = 10
	linesTime   = time.Minute
)

// fewLines is for what anybody who reaches a port can cause.
func fewLines(log *zap.Logger) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return &fewCore{c, &tallies{now: time.Now, of: map[string]*tally{}}}
	}))
}

// connectionLog takes the lines of an http.Server about connections.
func connectionLog(log *zap.Logger) *stdlog.Logger { return stdlog.New(connectionLines{log}, "", 0) }

type connectionLines struct{ log *zap.Logger }

// Write implements io.Writer. The line names an address, so the message must be another.
func (c connectionLines) Write(line []byte) (int, error) {
	c.log.Info("connection failed", zap.String(logkeys.Reason, strings.TrimSpace(string(line))))
	return len(line), nil
}

// fewCore is a core that leaves lines out. Messages are constants of the program, so that there are few tallies.
type fewCore struct {
	zapcore.Core
	tallies *tallies
}

type tallies struct {
	now func() time.Time
	mu  sync.Mutex // guards the rest
	of  map[string]*tally
}

type tally struct {
	since            time.Time
	written, omitted int
}

// With implements zapcore.Core.
func (c *fewCore) With(fields []zapcore.Field) zapcore.Core {
	return &fewCore{c.Core.With(fields), c.tallies}
}

// Check implements zapcore.Core.
func (c *fewCore) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(e.Level) || !c.tallies.take(e.Message) {
		return to
	}
	return to.AddCore(e, c)
}

// Write implements zapcore.Core.
func (c *fewCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if n := c.tallies.settle(e.Message); n > 0 {
		fields = append(fields, zap.Int(logkeys.Omitted, n))
	}
	return c.Core.Write(e, fields)
}

// take says whether a line with the message may be written.
func (t *tallies) take(message string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of[message]
	if one == nil {
		one = &tally{}
		t.of[message] = one
	}
	if now := t.now(); now.Sub(one.since) >= linesTime {
		one.since, one.written = now, 0
	}
	if one.written >= linesAtOnce {
		one.omitted++
		return false
	}
	one.written++
	return true
}

// settle returns how many lines were left out since one was written.
func (t *tallies) settle(message string) (omitted int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of[message]
	omitted, one.omitted = one.omitted, 0
	return omitted
}
