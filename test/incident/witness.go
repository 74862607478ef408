package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/test/audit/store"
)

// witnessing is what a node needs to know of its witness.
type witnessing struct{ url, key string }

// witness is the one that the cluster's webhooks are in reality: it lives in another process than the node.
type witness struct {
	witnessing
	server  *http.Server
	serving sync.WaitGroup
	dir     string
	log     evidence.Keys
	now     atomic.Pointer[time.Time]
}

// maxAsked bounds a request, in bytes.
const maxAsked = 32 << 10

// headerLimit bounds how long a caller of the witness may take to say what it wants.
const headerLimit = 10 * time.Second

func startWitness(dir string, log evidence.Keys) (*witness, error) {
	key, err := evidence.NewKey("witness.example/cluster")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	w := &witness{dir: dir, log: log}
	w.now.Store(&day)
	handler, err := evidence.NewWitness(evidence.WitnessOptions{
		Key: key, Store: store.New(dir), Now: func() time.Time { return *w.now.Load() },
		Keys: func(context.Context, string) (evidence.Keys, error) { return log, nil },
	})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w.witnessing = witnessing{"http://" + l.Addr().String(), key.WitnessKey()}
	mux := http.NewServeMux()
	mux.Handle(evidence.AddCheckpointPath, w.inTime(handler))
	w.server = &http.Server{Handler: mux, ReadHeaderTimeout: headerLimit}
	w.serving.Go(func() { _ = w.server.Serve(l) }) // it ends when it is closed
	return w, nil
}

// inTime sets the witness's clock, which is not the node's, to the minute after what it is asked about was signed.
func (w *witness) inTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(out, r.Body, maxAsked))
		if err != nil {
			http.Error(out, "too much", http.StatusBadRequest)
			return
		}
		_, raw, _ := bytes.Cut(body, []byte("\n\n"))
		if c, err := w.log.Open(raw); err == nil {
			now := c.SignedAt.Truncate(time.Minute).Add(time.Minute)
			w.now.Store(&now)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(out, r)
	})
}

// last is the checkpoint that was witnessed last.
func (w *witness) last() ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(w.dir, "*.checkpoint"))
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		return nil, errors.New("the witness has seen no checkpoint, or those of several logs")
	}
	return os.ReadFile(files[0])
}

func (w *witness) close() error {
	err := w.server.Close()
	w.serving.Wait()
	return err
}
