package publish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

const (
	// longest bounds how long a request may wait for a change.
	longest = 2 * time.Minute
	// mostWaiting bounds the requests that wait at one time; more get their answer at once. Each is an unauthenticated connection,
	// of some tens of KiB, in the process that answers reviews.
	mostWaiting = 1024
	// syncInterval is how often a replica looks at the store.
	syncInterval = 5 * time.Second
	// typeBundle tells OPA's own client that requests may wait for a change.
	typeBundle = "application/vnd.openpolicyagent.bundles"
)

// Server serves the bundles of all pools: GET /…/POOL or /…/POOL.tar.gz, with an ETag, and with "Prefer: wait=SECONDS" beside
// If-None-Match an answer as soon as there is another bundle. Bundles are signed and hold no secrets, but they
// say who may do what: serve them over TLS, and to nodes.
type Server struct {
	pools   map[string]*poolBundle
	waiting chan struct{}
	leaving chan struct{} // closed by Leave
	leave   sync.Once
}

// poolBundle is the present bundle of a pool.
type poolBundle struct {
	mu      sync.Mutex // guards the rest
	raw     []byte
	etag    string
	changed chan struct{} // closed when raw is replaced
}

// NewServer returns a Server without bundles.
func NewServer(pools []string) *Server {
	b := &Server{pools: map[string]*poolBundle{}, waiting: make(chan struct{}, mostWaiting), leaving: make(chan struct{})}
	for _, pool := range pools {
		b.pools[pool] = &poolBundle{changed: make(chan struct{})}
	}
	return b
}

// Put replaces the bundle of a pool, and answers those who wait for it. Pools that the Server does not have are ignored.
func (b *Server) Put(pool string, raw []byte) {
	p, ok := b.pools[pool]
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes.Equal(p.raw, raw) {
		return
	}
	sum := sha256.Sum256(raw)
	p.raw, p.etag = bytes.Clone(raw), `"`+hex.EncodeToString(sum[:16])+`"`
	close(p.changed)
	p.changed = make(chan struct{})
}

// Leave answers all waiting requests, and lets none wait from then on: a server that stops would wait for them. Clients ask
// again, and another replica.
func (b *Server) Leave() { b.leave.Do(func() { close(b.leaving) }) }

func (p *poolBundle) now() (raw []byte, etag string, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.raw, p.etag, p.changed
}

// ServeHTTP implements http.Handler.
func (b *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "want GET", http.StatusMethodNotAllowed)
		return
	}
	p, ok := b.pools[strings.TrimSuffix(path.Base(r.URL.Path), ".tar.gz")]
	if !ok {
		http.Error(w, "there is no such node pool", http.StatusNotFound)
		return
	}
	raw, etag, changed := p.now()
	wait := waitOf(r.Header)
	if wait > 0 && (raw == nil || matches(r.Header, etag)) && b.wait(w, r, changed, wait) {
		raw, etag, _ = p.now()
	}
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Vary", "Prefer")
	switch {
	case raw == nil:
		http.Error(w, "there is no bundle for this node pool yet", http.StatusNotFound)
		return
	case matches(r.Header, etag):
		w.Header().Set("ETag", etag)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("ETag", etag)
	w.Header().Set("Content-Type", "application/gzip")
	if wait > 0 {
		w.Header().Set("Content-Type", typeBundle)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(raw) // a client that has left needs no answer
	}
}

// wait returns true if there may be something new.
func (b *Server) wait(w http.ResponseWriter, r *http.Request, changed <-chan struct{}, wait time.Duration) bool {
	select {
	case b.waiting <- struct{}{}:
		defer func() { <-b.waiting }()
	default:
		return false
	}
	// Servers bound the time of an answer; this one may take longer. Those that cannot be asked have no bound of that kind.
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(wait + 30*time.Second))
	_ = control.SetReadDeadline(time.Time{}) // it would end the request's context
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-changed:
		return true
	case <-timer.C:
	case <-b.leaving:
	case <-r.Context().Done():
	}
	return false
}

// waitOf is how long a request prefers to wait (RFC 7240, 4.3).
func waitOf(h http.Header) time.Duration {
	for _, line := range h.Values("Prefer") {
		for preference := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ',' || r == ';' }) {
			value, ok := strings.CutPrefix(strings.TrimSpace(preference), "wait=")
			if n, err := strconv.Atoi(value); ok && err == nil && n > 0 {
				return min(time.Duration(min(n, 3600))*time.Second, longest)
			}
		}
	}
	return 0
}

// matches reports whether the client has this one (RFC 9110, 13.1.2).
func matches(h http.Header, etag string) bool {
	if etag == "" {
		return false
	}
	for _, line := range h.Values("If-None-Match") {
		for tag := range strings.SplitSeq(line, ",") {
			if tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/"); tag == etag || tag == "*" {
				return true
			}
		}
	}
	return false
}

// Syncer puts on a Server what is in a Store. It runs on every replica: requests come to any of them.
type Syncer struct {
	Store  Store
	Server *Server
	// Changed is called when something else is stored than at the look before; it does not wait. It may be nil. A leader's
	// Publisher wants to know of it: nodes must not wait for a bundle that was deleted.
	Changed func()
	Log     *zap.Logger
}

// Start looks every few seconds until ctx is done. What cannot be read stays on the Server as it was: nodes hold it
// against its own end.
func (m *Syncer) Start(ctx context.Context) error {
	versions, failing := map[string]string{}, map[string]bool{}
	look := func() {
		for pool := range m.Server.pools {
			s, err := m.Store.Get(ctx, pool)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				if !failing[pool] { // the first of a row tells enough
					m.Log.Warn("bundle not read; what is served stays", zap.String(logkeys.Name, pool), zap.Error(err))
				}
				failing[pool] = true
				continue
			}
			failing[pool] = false
			if len(s.Raw) > 0 {
				m.Server.Put(pool, s.Raw)
			}
			before, seen := versions[pool]
			versions[pool] = s.Version
			if seen && before != s.Version && m.Changed != nil {
				m.Changed()
			}
		}
	}
	look()
	periodic.Run(ctx, syncInterval, look)
	return nil
}
