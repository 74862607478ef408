package main

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// leaveFor is how long a replica in a cluster goes on answering after it was told to stop. API servers keep connections
// open, and one that is closed under a request that was just sent is a failed call. In this time every answer asks for the
// end of its connection, so that only those are left to be closed that nobody has used for as long.
const leaveFor = time.Second

// leave lets clients go before the server does.
type leave struct {
	delay   time.Duration // zero stops at once
	leaving atomic.Bool
}

// after returns a context that ends some time after ctx.
func (l *leave) after(ctx context.Context) context.Context {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		l.leaving.Store(true)
		time.AfterFunc(l.delay, cancel)
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
