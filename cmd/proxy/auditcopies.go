package main

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/audit/copies"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// openCopies opens the destinations that records are copied to. If one cannot be opened, the start fails: the configuration asks for it.
func (a *auditLog) openCopies(o auditOptions) error {
	c := o.settings.Copies
	var places []copies.Destination
	if c.Stdout {
		places = append(places, copies.Stdout(o.stdout))
	}
	if c.EventLog != "" {
		events, err := winsvc.OpenEventLog()
		if err != nil {
			return fmt.Errorf("audit.copies.eventLog: %w", err)
		}
		a.closing = events.Close
		which := copies.Denied
		if c.EventLog == config.CopyAll {
			which = copies.All
		}
		places = append(places, copies.EventLog(events, which))
	}
	if c.OTLP.Endpoint != "" {
		place, err := copies.OTLP(otlpOptions(c.OTLP, o.node))
		if err != nil {
			return fmt.Errorf("audit.copies.otlp: %w", err)
		}
		places = append(places, place)
	}
	var err error
	a.copies, err = copies.New(copies.Options{Destinations: places, OnLoss: func(err error) { o.log.Warn("copy of audit records", zap.Error(err)) }})
	return err
}

func otlpOptions(c config.OTLP, node string) copies.OTLPOptions {
	return copies.OTLPOptions{Endpoint: c.Endpoint, CAFile: c.CAFile, Insecure: c.Insecure, Host: node, Node: node}
}

// closeCopies delivers the remaining records until ctx is done. Records that a destination does not take are still in the log, so this is not an error.
func (a *auditLog) closeCopies(ctx context.Context, log *zap.Logger) {
	if a.copies != nil {
		if err := a.copies.Close(ctx); err != nil {
			log.Warn("copy of audit records", zap.Error(err))
		}
	}
	if err := a.closing(); err != nil {
		log.Warn("copy of audit records", zap.Error(err))
	}
}
