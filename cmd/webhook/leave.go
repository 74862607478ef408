package main

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// leaveFor is how long the server goes on answering, while connections are open, after it was told to stop. API servers keep connections
// open, and one that is closed under a request that was just sent is a failed call. In this time every answer asks for the
// end of its connection, so that only those are left to be closed that nobody has used for as long.
const leaveFor = time.Second

// leave lets clients go before the server does.
type leave struct {
	leaving atomic.Bool
}

// after returns a context that ends some time after ctx, or once no connection is open.
func (l *leave) after(ctx context.Context, open func() int) context.Context {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		l.leaving.Store(true)
		for end := time.Now().Add(leaveFor); open() > 0 && time.Now().Before(end); {
			time.Sleep(leaveFor / 50) //nolint:mnd // rarely enough to cost nothing
		}
		cancel()
	})
	return later
}

// whileLeaving asks for the end of each connection once the process was told to stop.
func (l *leave) whileLeaving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if l.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, req)
	})
}
