package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/logfile"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// newLog returns the diagnostic log: one JSON object a line. What must not be lost is in the audit log, not here.
func newLog(f *flags, c config.Log, stderr io.Writer) (log *zap.Logger, closeLog func(), err error) {
	var outputs []zapcore.WriteSyncer
	var open []io.Closer
	closeLog = func() {
		for _, c := range open {
			_ = c.Close() // there is no log left for the error
		}
	}
	if path := f.logPath(c); path != "" {
		file, err := logfile.Open(path, logfile.Options{MaxSizeMB: f.logSize(c), MaxBackups: c.MaxBackups, MaxAgeDays: c.MaxAgeDays})
		if err != nil {
			return nil, nil, err
		}
		open = append(open, file)
		outputs = append(outputs, file)
	}
	if len(outputs) == 0 || f.klog.alsoToStderr {
		outputs = append(outputs, zapcore.AddSync(stderr))
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	level := zapcore.InfoLevel - zapcore.Level(min(f.klog.verbosity, 100)) // #nosec G115 -- bounded in the same line
	core := zapcore.NewCore(zapcore.NewJSONEncoder(encoding), zapcore.Lock(inert.Lines(zap.CombineWriteSyncers(outputs...))), level)
	if !c.EventLog && !f.windowsService {
		return zap.New(core), closeLog, nil
	}
	events, err := winsvc.OpenEventLog()
	if err != nil {
		log = zap.New(core)
		log.Warn("no event log", zap.Error(err))
		return log, closeLog, nil
	}
	open = append(open, events)
	return zap.New(zapcore.NewTee(core, newEventCore(events))), closeLog, nil
}

// logPath is the file for diagnostics: the command line's, else the configuration's, else none.
func (f *flags) logPath(c config.Log) string {
	switch {
	case !f.klog.toStderr && f.klog.file != "":
		return f.klog.file
	case f.given["logtostderr"] && f.klog.toStderr:
		return ""
	}
	return c.Path
}

// logSize is the size in MiB at which the file is begun anew; a negative one is no bound, as is klog's 0.
func (f *flags) logSize(c config.Log) int {
	switch {
	case !f.given["log_file_max_size"]:
		return c.MaxSizeMB
	case f.klog.maxSize == 0:
		return -1
	}
	return int(min(f.klog.maxSize, 1<<20)) // #nosec G115 -- bounded in the same line
}
