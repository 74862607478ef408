package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestAReplicaAnswersForAWhileAfterItWasToldToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l leave
		ctx, stop := context.WithCancel(t.Context())
		serving := l.after(ctx, func() int { return 1 })
		handler := l.whileLeaving(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		ask := func() string {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
			return w.Header().Get("Connection")
		}
		if got := ask(); got != "" {
			t.Errorf("Connection: %q before it was told", got)
		}
		stop()
		synctest.Wait()
		if got := ask(); got != "close" || serving.Err() != nil {
			t.Errorf("Connection: %q, %v; want close, and a server that goes on", got, serving.Err())
		}
		time.Sleep(leaveFor)
		synctest.Wait()
		if serving.Err() == nil {
			t.Error("the server never stops")
		}
		if ctx := new(leave).after(ctx, func() int { return 0 }); ctx.Err() == nil {
			if synctest.Wait(); ctx.Err() == nil {
				t.Error("a server without connections waits")
			}
		}
	})
}
