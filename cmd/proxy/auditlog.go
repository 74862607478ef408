package main

import (
	"context"
	"io"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/logkeys"
)

// reopenInterval is how often a log that has failed is tried again. Calls are refused until it works.
const reopenInterval = time.Second

// auditLog is where records go.
type auditLog struct {
	audit.Writer
	file *audit.File // nil for standard output
}

func openAuditLog(f *flags, c config.Audit, stdout io.Writer, log *zap.Logger) (*auditLog, error) {
	path := f.auditLog
	if path == "" {
		path = c.Path
	}
	if path == "-" {
		return &auditLog{Writer: audit.NewStream(stdout)}, nil
	}
	if path == "" {
		path = defaultAuditLog
		if f.socketDir != "" {
			path = filepath.Join(f.socketDir, "audit.jsonl")
		}
	}
	file, err := audit.OpenFile(path, audit.FileOptions{NoSync: c.NoSync, OnMoved: func(err error) {
		log.Error("audit log was moved away or removed; a new one is begun", zap.String(logkeys.Path, path), zap.Error(err))
	}})
	if err != nil {
		return nil, err
	}
	log.Info("audit log open", zap.String(logkeys.Path, path))
	return &auditLog{Writer: file, file: file}, nil
}

// keep tries a log that has failed again until ctx is done.
func (a *auditLog) keep(ctx context.Context, log *zap.Logger) {
	if a.file == nil {
		return
	}
	a.file.Keep(ctx, reopenInterval, func(err error) {
		if err != nil {
			log.Error("audit log still fails; calls are refused", zap.Error(err))
			return
		}
		log.Warn("audit log works again")
	})
}

func (a *auditLog) close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}
