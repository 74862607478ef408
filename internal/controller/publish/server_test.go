package publish

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func ask(t *testing.T, b *Server, target string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

func TestABoardServesWhatItHas(t *testing.T) {
	b := NewServer([]string{"windows", "empty"})
	b.Put("windows", []byte("one"))
	b.Put("nobody", []byte("x"))
	w := ask(t, b, "/bundles/windows.tar.gz")
	etag := w.Header().Get("ETag")
	if w.Code != http.StatusOK || w.Body.String() != "one" || len(etag) != 34 || w.Header().Get("Content-Type") != "application/gzip" {
		t.Fatalf("%d %q %v", w.Code, w.Body, w.Header())
	}
	for name, c := range map[string]struct {
		target, tag string
		want        int
	}{
		"the same":                 {"/bundles/windows", etag, http.StatusNotModified},
		"the same, weakly":         {"/bundles/windows", `"x", W/` + etag, http.StatusNotModified},
		"any":                      {"/bundles/windows", "*", http.StatusNotModified},
		"another":                  {"/bundles/windows", `"x"`, http.StatusOK},
		"without its quotes":       {"/bundles/windows", strings.Trim(etag, `"`), http.StatusOK},
		"a pool without a bundle":  {"/bundles/empty", "*", http.StatusNotFound},
		"a pool that is not there": {"/bundles/nobody", "", http.StatusNotFound},
		"the root":                 {"/", "", http.StatusNotFound},
		"a name that climbs":       {"/bundles/../../etc/passwd", "", http.StatusNotFound},
	} {
		if w := ask(t, b, c.target, "If-None-Match", c.tag); w.Code != c.want {
			t.Errorf("%s: %d, want %d", name, w.Code, c.want)
		}
	}
	post := httptest.NewRecorder()
	b.ServeHTTP(post, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/bundles/windows", nil))
	if post.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", post.Code)
	}
}

func TestARequestWaitsForTheNextBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewServer([]string{"windows"})
		b.Put("windows", []byte("one"))
		etag := ask(t, b, "/windows").Header().Get("ETag")
		var group sync.WaitGroup
		start := time.Now()
		waits := func(prefer string, want int, body string, after time.Duration) {
			group.Go(func() {
				w := ask(t, b, "/windows", "If-None-Match", etag, "Prefer", prefer)
				if took := time.Since(start); w.Code != want || w.Body.String() != body || took != after {
					t.Errorf("%s: %d %q after %v, want %d %q after %v", prefer, w.Code, w.Body, took, want, body, after)
				}
				if w.Code == http.StatusOK && w.Header().Get("Content-Type") != typeBundle {
					t.Errorf("%s: %v", prefer, w.Header())
				}
			})
		}
		waits("modes=snapshot;wait=30", http.StatusOK, "two", 10*time.Second)
		waits("wait=1000000000", http.StatusOK, "two", 10*time.Second)
		waits("respond-async, wait=5", http.StatusNotModified, "", 5*time.Second)
		waits("wait=-5", http.StatusNotModified, "", 0)
		waits("wait=x", http.StatusNotModified, "", 0)
		time.Sleep(10 * time.Second)
		b.Put("windows", []byte("one")) // nothing new
		b.Put("windows", []byte("two"))
		group.Wait()

		start, etag = time.Now(), ask(t, b, "/windows").Header().Get("ETag")
		waits("wait=3600", http.StatusNotModified, "", longest)
		group.Wait()
	})
}

func TestAClientThatLeavesIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewServer([]string{"windows"})
		ctx, leave := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/windows", nil)
		r.Header.Set("Prefer", "wait=60")
		var group sync.WaitGroup
		group.Go(func() { b.ServeHTTP(httptest.NewRecorder(), r) })
		synctest.Wait()
		start := time.Now()
		leave()
		group.Wait()
		if time.Since(start) != 0 || len(b.waiting) != 0 {
			t.Errorf("waited %v, %d still wait", time.Since(start), len(b.waiting))
		}
	})
}

func TestWhoWaitsIsAnsweredBeforeTheServerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewServer([]string{"windows"})
		b.Put("windows", []byte("one"))
		etag := ask(t, b, "/windows").Header().Get("ETag")
		start := time.Now()
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				if w := ask(t, b, "/windows", "If-None-Match", etag, "Prefer", "wait=60"); w.Code != http.StatusNotModified {
					t.Errorf("%d", w.Code)
				}
			})
		}
		synctest.Wait()
		b.Leave()
		b.Leave()
		group.Wait()
		if w := ask(t, b, "/windows", "If-None-Match", etag, "Prefer", "wait=60"); w.Code != http.StatusNotModified {
			t.Errorf("afterwards: %d", w.Code)
		}
		if w := ask(t, b, "/windows"); w.Body.String() != "one" {
			t.Errorf("afterwards: %d %q", w.Code, w.Body)
		}
		if time.Since(start) != 0 {
			t.Errorf("waited %v", time.Since(start))
		}
	})
}

func TestTooManyWhoWaitAreAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewServer([]string{"windows"})
		for range mostWaiting {
			b.waiting <- struct{}{}
		}
		start := time.Now()
		if w := ask(t, b, "/windows", "Prefer", "wait=60"); w.Code != http.StatusNotFound || time.Since(start) != 0 {
			t.Errorf("%d after %v", w.Code, time.Since(start))
		}
	})
}

func TestEveryReplicaShowsWhatIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := &memory{}, NewServer([]string{"windows"})
		changes := 0
		core, logs := observer.New(zap.WarnLevel)
		m := &Syncer{Store: store, Server: b, Changed: func() { changes++ }, Log: zap.New(core)}
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { _ = m.Start(ctx) })
		synctest.Wait()
		if w := ask(t, b, "/windows"); w.Code != http.StatusNotFound {
			t.Errorf("before: %d", w.Code)
		}
		_ = store.Put(ctx, "windows", Stored{Raw: []byte("one")})
		time.Sleep(syncInterval + time.Second)
		synctest.Wait()
		if w := ask(t, b, "/windows"); w.Body.String() != "one" {
			t.Errorf("after: %d %q", w.Code, w.Body)
		}
		for _, err := range []error{errors.New("no route"), nil, errors.New("no route")} {
			store.fail(err)
			time.Sleep(10 * syncInterval)
			synctest.Wait()
		}
		if w := ask(t, b, "/windows"); w.Body.String() != "one" || logs.Len() != 2 {
			t.Errorf("while it cannot be read: %d %q, %d lines", w.Code, w.Body, logs.Len())
		}
		store.fail(nil)
		store.remove()
		time.Sleep(3 * syncInterval)
		synctest.Wait()
		if w := ask(t, b, "/windows"); w.Body.String() != "one" || changes != 2 {
			t.Errorf("deleted: %d %q, %d changes", w.Code, w.Body, changes)
		}
		stop()
		group.Wait()
	})
}
