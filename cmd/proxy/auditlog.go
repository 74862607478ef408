package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/copies"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/logkeys"
)

// closingTimeout bounds how long the end of the process waits for copies and for the witness. The log itself is complete by then.
const closingTimeout = 5 * time.Second

// auditLog is where records go: a directory of segments with its evidence and copies, or standard output.
type auditLog struct {
	audit.Writer
	segments  *segment.Writer // nil for standard output, as are the fields below
	log       *zap.Logger
	path      string
	key       string // that verifies checkpoints
	tree      *evidence.Log
	copies    *copies.Copies
	witnessed *witnessState // nil without a witness
	closing   func() error  // closes the event log that copies go to
}

// auditOptions are what an audit log needs to know of the process.
type auditOptions struct {
	settings config.Audit
	node     string
	stdout   io.Writer
	log      *zap.Logger
	shutdown func(error) // ends the process
}

// auditPath is the directory of the log, or - for standard output.
func (f *flags) auditPath(c config.Audit) string {
	switch {
	case f.auditLog != "":
		return f.auditLog
	case c.Path != "":
		return c.Path
	case f.socketDir != "":
		return filepath.Join(f.socketDir, "audit")
	}
	return defaultAuditLog
}

func openAuditLog(ctx context.Context, path string, o auditOptions) (_ *auditLog, err error) {
	if path == "-" {
		return &auditLog{Writer: audit.NewStream(o.stdout)}, nil
	}
	if err := directory(path); err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	a := &auditLog{log: o.log, path: path, closing: func() error { return nil }}
	defer func() {
		if err != nil {
			ctx, stop := context.WithTimeout(context.Background(), closingTimeout)
			defer stop()
			a.closeCopies(ctx, o.log)
		}
	}()
	if err := a.openCopies(o); err != nil {
		return nil, err
	}
	sinks := a.copies.Checkpoints()
	if o.settings.Witness.URL != "" {
		a.witnessed = &witnessState{}
		client, err := newWitnessClient(o.settings.Witness, a.witnessed, o.log)
		if err != nil {
			return nil, fmt.Errorf("audit.witness: %w", err)
		}
		sinks = append(sinks, client)
	}
	if err := a.openSegments(ctx, o, sinks); err != nil {
		if ctx.Err() == nil {
			o.log.Error("audit log", event(eventAuditFault), zap.Error(err))
		}
		return nil, err
	}
	a.Writer = a.segments
	o.log.Info("audit log open", zap.String(logkeys.Path, path))
	return a, nil
}

// openSegments continues the log in the directory from its last signed checkpoint.
func (a *auditLog) openSegments(ctx context.Context, o auditOptions, sinks []evidence.Sink) error {
	keys, err := signingKeys(a.path, o)
	if err != nil {
		return err
	}
	last, err := evidence.LastSigned(a.path, keys, o.states(a.path))
	if err != nil {
		return err
	}
	so := o.segmentOptions()
	so.Covered, so.Fits, so.Missing, so.OnRecord = last.Size, evidence.Fits(a.path, last.Head), last.Missing, a.copies.Record
	so.Evidence = func(*segment.Found) (segment.Evidence, error) {
		if len(keys) == 0 { // only the process that holds the directory may make a key for it
			key, err := newSigningKey(a.path, last.Size > 0, o)
			if err != nil {
				return nil, err
			}
			keys = []*evidence.Key{key}
		}
		o.log.Info("audit log is signed", zap.String(logkeys.Name, keys[0].Name()), zap.Stringer(logkeys.VerifierKey, keys[0]))
		a.key = keys[0].LogKey()
		a.tree, err = evidence.Open(ctx, evidence.Options{Dir: a.path, Keys: keys, States: o.states(a.path), Grown: o.keyFiles(a.path)[0] + ".grown", Sinks: sinks, OnFault: o.checkpointFailed, Prunes: so.KeepBytes > 0 || so.KeepAge > 0})
		if err != nil {
			return nil, fmt.Errorf("%w; if that is for want of room, make some and start again; else look at why, and move this directory away to begin a new log", err)
		}
		return a.tree, nil
	}
	if a.segments, err = segment.Open(ctx, a.path, so); err != nil {
		if a.tree != nil {
			err = errors.Join(err, a.tree.Close(ctx))
		}
		return err
	}
	return nil
}

func (o auditOptions) segmentOptions() segment.Options {
	c := o.settings
	return segment.Options{
		SegmentBytes: int64(c.SegmentMiB) << 20, SegmentAge: c.SegmentAge, KeepBytes: int64(c.KeepMiB) << 20, KeepAge: c.KeepAge,
		Admitted: c.Operations, NoSync: c.NoSync, Where: &audit.Where{Node: o.node},
		OnFailure: c.OnFailure, OnShutdown: o.shutdown,
		OnFault: func(err error) {
			if err == nil {
				o.log.Warn("audit log works again", event(eventAuditBack))
				return
			}
			o.log.Error("audit log", event(eventAuditFault), zap.Error(err))
		},
	}
}

// checkpointFailed logs a failure that no caller waits for.
func (o auditOptions) checkpointFailed(err error) {
	switch {
	case errors.Is(err, evidence.ErrWitnessAhead), errors.Is(err, evidence.ErrWitnessRefuses):
		o.log.Error("THE WITNESS HAS SEEN ANOTHER AUDIT LOG OF THIS NODE: it was rolled back or changed", event(eventAuditContradicted), zap.Error(err))
	case errors.Is(err, evidence.ErrWitnessClock):
		o.log.Warn("the clocks of this node and of the witness differ, and the audit log is not cosigned", event(eventAuditClock), zap.Error(err))
	case errors.Is(err, evidence.ErrCheckpointsGone), errors.Is(err, evidence.ErrCheckpointsStrange), errors.Is(err, evidence.ErrStartChanged):
		o.log.Error("audit log", event(eventAuditFault), zap.Error(err))
	default:
		o.log.Warn("audit checkpoint", zap.Error(err))
	}
}

// works is a health check: the audit log takes records of calls, signs them, and removes those past its retention.
func (a *auditLog) works() error {
	if a.segments == nil {
		return nil
	}
	s := a.segments.Stats()
	if err := errors.Join(s.Err, s.Unsigned, s.Unpruned); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

// overdue is the last record that is past retention and that the log keeps for an operation under way.
func (a *auditLog) overdue() uint64 {
	if a.segments == nil {
		return 0
	}
	return a.segments.Stats().Overdue
}

// missing writes into the last record of the log how many requests have no record.
func (a *auditLog) missing(n uint64) {
	if a.segments != nil {
		a.segments.Missing(n)
	}
}

// register registers the metrics of the log.
func (a *auditLog) register(r prometheus.Registerer) {
	if a.segments == nil {
		return
	}
	r.MustRegister(newAuditCollector(a), copies.Collector(a.copies))
}

// close closes the log, and then delivers the remaining copies and checkpoints.
func (a *auditLog) close() error {
	if a.segments == nil {
		return nil
	}
	err := a.segments.Close()
	ctx, stop := context.WithTimeout(context.Background(), closingTimeout)
	defer stop()
	half, stopHalf := context.WithTimeout(ctx, closingTimeout/2) // a sink that does not answer must not use up the time of the copies
	defer stopHalf()
	err = errors.Join(err, a.tree.Close(half))
	a.closeCopies(ctx, a.log)
	return err
}
