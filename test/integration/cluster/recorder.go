//go:build !windows

package cluster

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pipeguard/pipeguard/test/harness"
)

// Recorder is a webhook that admits everything and remembers what it was asked about: what the API server sends.
type Recorder struct {
	// Port is where reviews are sent; CA is the PEM text to verify it with.
	Port int32
	CA   []byte

	server *http.Server
	ended  chan error

	mu   sync.Mutex // guards seen
	seen []Asked
}

// Asked is a request, and the path at which the API server asked.
type Asked struct {
	admissionv1.AdmissionRequest
	Path string
}

// StartRecorder listens on a free port of the loopback interface.
func StartRecorder(t testing.TB) (*Recorder, error) {
	t.Helper()
	cert := harness.SelfSigned(t, ServiceHost)
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // binding does not wait
	if err != nil {
		return nil, fmt.Errorf("start a recorder: %w", err)
	}
	r := &Recorder{Port: portOf(l.Addr().String()), CA: []byte(cert.PEM), ended: make(chan error, 1)}
	r.server = &http.Server{
		Handler: r, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert.Certificate}, MinVersion: tls.VersionTLS12},
	}
	go func() { r.ended <- r.server.ServeTLS(l, "", "") }()
	return r, nil
}

// ServeHTTP admits, whatever the path.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.seen = append(r.seen, Asked{*review.Request, req.URL.Path})
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review) // whoever asked has gone
}

// Seen returns the requests so far.
func (r *Recorder) Seen() []Asked {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// Close ends the recorder.
func (r *Recorder) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := r.server.Shutdown(ctx)
	if ended := <-r.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
