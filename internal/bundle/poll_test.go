package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// transport is a server without a network, which a bubble of synctest can wait for.
type transport func(*http.Request) *http.Response

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

func TestAServerIsPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		k := n.start(t)
		var mu sync.Mutex
		var code int
		var raw []byte
		asked := 0
		serve := func(status int, body []byte) {
			mu.Lock()
			defer mu.Unlock()
			code, raw = status, body
		}
		server := transport(func(r *http.Request) *http.Response {
			mu.Lock()
			defer mu.Unlock()
			asked++
			etag := fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256(raw)))
			w := &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{"Etag": {etag}, "Location": {"/other"}}, Body: io.NopCloser(bytes.NewReader(raw))}
			if code == http.StatusOK && r.Header.Get("If-None-Match") == etag {
				w.StatusCode, w.Body = http.StatusNotModified, http.NoBody
			}
			return w
		})
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		serve(http.StatusNotFound, []byte("none"))
		client := &http.Client{Transport: server, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		group.Go(func() { _ = k.Poll(ctx, client, "https://controller/bundles/windows") })
		expect := func(want uint64) {
			t.Helper()
			time.Sleep(2 * pollPause)
			synctest.Wait()
			if n.decides.Load() != want {
				t.Errorf("revision %d decides, want %d; %+v", n.decides.Load(), want, k.Status().Refused)
			}
		}
		expect(0)
		serve(http.StatusOK, build(t, n.key))
		expect(7)
		serve(http.StatusOK, build(t, n.key, revision(6)))
		expect(7)
		serve(http.StatusFound, build(t, n.key, revision(8)))
		expect(7)
		serve(http.StatusOK, make([]byte, MaxCompressed+1))
		expect(7)
		serve(http.StatusOK, build(t, n.key, revision(9)))
		expect(9)
		count := func() int {
			mu.Lock()
			defer mu.Unlock()
			return asked
		}
		before := count()
		time.Sleep(10 * pollPause)
		synctest.Wait()
		if n := count() - before; n > 11 {
			t.Errorf("asked %d times in %v", n, 10*pollPause)
		}
		stop()
		group.Wait()
	})
}

func TestFetchBoundsWhatItReads(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "identity" {
			t.Error("a second compression is asked for")
		}
		for range 100 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	if raw, _, err := fetch(t.Context(), server.Client(), server.URL, ""); ReasonOf(err) != ReasonSize || raw != nil {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
}
