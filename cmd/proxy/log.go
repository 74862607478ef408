package main

import (
	"fmt"
	"io"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLog returns the diagnostic log: one JSON object a line. What must not be lost is in the audit log, not here.
func newLog(f *flags, stderr io.Writer) (log *zap.Logger, closeLog func(), err error) {
	closeLog = func() {}
	var outputs []zapcore.WriteSyncer
	if !f.klog.toStderr && f.klog.file != "" {
		file, err := os.OpenFile(f.klog.file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600) // #nosec G703 -- the operator names the file
		if err != nil {
			return nil, nil, fmt.Errorf("open log file: %w", err)
		}
		closeLog = func() { _ = file.Close() } // nobody is left to be told
		outputs = append(outputs, file)
	}
	if len(outputs) == 0 || f.klog.alsoToStderr {
		outputs = append(outputs, zapcore.AddSync(stderr))
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	level := zapcore.InfoLevel - zapcore.Level(min(f.klog.verbosity, 100)) // #nosec G115 -- bounded in the same line
	core := zapcore.NewCore(zapcore.NewJSONEncoder(encoding), zapcore.Lock(zap.CombineWriteSyncers(outputs...)), level)
	return zap.New(core), closeLog, nil
}
