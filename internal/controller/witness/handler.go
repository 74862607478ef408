package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

// Bounds of what unauthenticated clients may cost the process that answers reviews.
const (
	// maxBody is above what evidence reads of a request, so that a request which is too long is told from one that is no request.
	maxBody = 24 << 10
	// maxReading bounds how long the body of a request may take.
	maxReading = 10 * time.Second
	// maxAsking bounds how long the API server is waited for.
	maxAsking = 15 * time.Second
	// mostAsking bounds the requests that wait for the API server, most of them for their round. They hold a fourth of the connections that the
	// process has; 5,000 nodes that ask one replica are 83 a second, which wait for up to as many seconds as there are shards.
	mostAsking = 512
	// mostOfLog bounds those of one log where more than half of mostAsking wait: copies of a checkpoint that was signed minutes ago are enough to ask.
	mostOfLog = 64
	// burst and perSecond bound all requests: 10,000 nodes that ask two replicas once a minute are 84 a second.
	burst, perSecond = 500, 250
	// burstOfLog and perSecondOfLog bound what one log has written to etcd, when it grows and when it is signed anew.
	burstOfLog, perSecondOfLog = 10, 1
	// mostLogs bounds the logs of which is known how often they ask.
	mostLogs = 20_000
)

// Options configure New.
type Options struct {
	// Key returns the key that cosigns. It is asked for each request.
	Key func() (*evidence.Key, error)
	// Given returns the operator's keys of a log, none if there are none.
	Given func(origin string) evidence.Keys
	// Reported returns the key that a node names for its log, and is pinned with the first checkpoint; "" if it names none. Nil trusts
	// only what is given.
	Reported func(ctx context.Context, origin string) (string, error)
	Memory   Memory
	// Events takes what is told of nodes. Nil takes nothing.
	Events EventRecorder
	// Registerer takes the metrics.
	Registerer prometheus.Registerer
	Log        *zap.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Handler answers POST …/add-checkpoint (https://c2sp.org/tlog-witness). Requests need no authentication: what a log did not sign is refused.
type Handler struct {
	o       Options
	metrics *metrics
	asking  chan struct{}
	waiting places // by log; those that ask and have a checkpoint that it signed
	all     *bucket
	writes  buckets // by log, when it grows
	repeats buckets // by log, when it is signed anew: that delays no growth
	loud    buckets // log lines and Events, by what they are about
}

// New returns a Handler, or everything that is wrong with the options.
func New(o Options) (*Handler, error) {
	var faults []error
	for what, isMissing := range map[string]bool{
		"key": o.Key == nil, "keys of logs": o.Given == nil, "memory": o.Memory == nil, "registerer": o.Registerer == nil, "log": o.Log == nil,
	} {
		if isMissing {
			faults = append(faults, fmt.Errorf("no %s", what))
		}
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("witness: %w", errors.Join(faults...))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	ofLog := func() *bucket { return newBucket(burstOfLog, perSecondOfLog, o.Now) }
	return &Handler{
		o: o, metrics: newMetrics(o.Registerer), asking: make(chan struct{}, mostAsking), all: newBucket(burst, perSecond, o.Now),
		writes: buckets{make: ofLog, most: mostLogs}, repeats: buckets{make: ofLog, most: mostLogs},
		loud: buckets{make: func() *bucket { return newBucket(3, 1.0/60, o.Now) }, most: mostLogs},
	}, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &attempt{h: h}
	if !h.all.take() {
		http.Error(w, "too many ask", http.StatusTooManyRequests)
		h.tell(r.Context(), a, reasonBusy, nil)
		return
	}
	body, err := h.read(w, r)
	if err != nil {
		why, status := reasonMalformed, http.StatusBadRequest
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			why, status = reasonOversize, http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the request cannot be read, or is too long", status)
		h.tell(r.Context(), a, why, nil)
		return
	}
	select {
	case h.asking <- struct{}{}:
		defer func() { <-h.asking }()
	default:
		http.Error(w, "too many ask", http.StatusTooManyRequests)
		h.tell(r.Context(), a, reasonBusy, nil)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxAsking)
	defer cancel()
	h.answer(ctx, w, r, a, body)
}

// answer lets the witness answer, and records the result.
func (h *Handler) answer(ctx context.Context, w http.ResponseWriter, r *http.Request, a *attempt, body []byte) {
	key, err := h.o.Key()
	if err != nil {
		a.err = err
		http.Error(w, "the witness cannot answer now", http.StatusServiceUnavailable)
		h.tell(ctx, a, reasonNoKey, nil)
		return
	}
	one, err := evidence.NewWitness(evidence.WitnessOptions{
		Key: key, Keys: a.keys, Store: a, Now: h.o.Now,
		OnRefused: func(r evidence.Refused) { a.refusal = &r }, OnRepeated: func() { a.isOld = true },
	})
	if err != nil {
		a.err = err
		http.Error(w, "the witness cannot answer now", http.StatusServiceUnavailable)
		h.tell(ctx, a, reasonStore, nil)
		return
	}
	defer a.leave()
	r = r.Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	seen := &watched{ResponseWriter: w, status: http.StatusOK}
	one.ServeHTTP(seen, r)
	if seen.status == http.StatusOK {
		h.cosigned(a)
		return
	}
	h.tell(ctx, a, a.reasonOf(seen.status), body)
}

// read reads a body in bounded time: a slow client holds no more than its own connection.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	control := http.NewResponseController(w)
	// Servers that cannot be told have no bound of that kind. The deadline must be gone before the answer: it would end the request.
	_ = control.SetReadDeadline(time.Now().Add(maxReading))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_ = control.SetReadDeadline(time.Time{})
	return body, err
}

// watched remembers the status of an answer.
type watched struct {
	http.ResponseWriter
	status int
}

func (w *watched) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}
