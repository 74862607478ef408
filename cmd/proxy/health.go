package main

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// readiness knows whether calls can be served, and if not, why.
type readiness struct {
	open   atomic.Bool    // the pipes
	checks []func() error // each returns an error while a part does not work
}

func (r *readiness) faults() []error {
	var faults []error
	if !r.open.Load() {
		faults = append(faults, errors.New("pipes: not open"))
	}
	for _, check := range r.checks {
		if err := check(); err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}

// routes adds the endpoints of a health check. /healthz succeeds while the process answers; a restart would not help with
// the faults that /readyz names.
func (r *readiness) routes(mux *http.ServeMux) {
	say := func(w http.ResponseWriter, code int, text string) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text+"\n") // a client that has left needs no answer
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		faults := r.faults()
		if len(faults) == 0 {
			say(w, http.StatusOK, "ok")
			return
		}
		lines := make([]string, len(faults))
		for i, fault := range faults {
			lines[i] = fault.Error()
		}
		say(w, http.StatusServiceUnavailable, strings.Join(lines, "\n"))
	})
}
