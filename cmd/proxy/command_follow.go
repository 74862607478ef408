package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/pipeguard/pipeguard/cmd/proxy/internal/install"
)

// keep keeps an installation as it should be until ctx is done, and leaves the service running. metricsAddress is where the
// service answers which policies it enforces.
func (f *installFlags) keep(ctx context.Context, installer *install.Installer, metricsAddress string, say func(string, ...any)) error {
	var last atomic.Pointer[error]
	last.Store(new(errors.New("installation: not finished")))
	state := &readiness{checks: []func() error{func() error { return *last.Load() }}}
	state.open.Store(true)
	stop, err := serveHTTP(f.healthAddress, func(mux *http.ServeMux) { state.routes(mux) }, nil, func(address string) { say("health served on %s", address) })
	if err != nil {
		return err
	}
	var contested atomic.Pointer[error]
	contested.Store(new(error))
	var reports reports
	if err := reports.prepare(f.report, metricsAddress, func() error { return errors.Join(*last.Load(), *contested.Load()) }, say); err != nil {
		return errors.Join(err, stop())
	}
	said := ""
	installer.Follow(ctx, func(changed bool, err error) {
		last.Store(&err)
		contested.Store(new(installer.Contested()))
		reports.begin(ctx) // not before there is something to report
		text := ""
		if err != nil {
			text = err.Error()
		}
		switch {
		case text != "" && text != said:
			say("error: %v", err)
		case text == "" && (said != "" || changed):
			say("service %s is as it should be", f.name)
		}
		said = text
	})
	reports.running.Wait()
	say("asked to stop; service %s is left running", f.name)
	return stop()
}
