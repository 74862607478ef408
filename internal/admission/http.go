package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/logkeys"
)

const (
	// maxBody bounds a request: the API server takes objects of up to 3 MiB as JSON, and Pods with their history
	// stay far below half of that, so an update, which carries two, fits as well.
	maxBody = 3 << 20
	// maxInFlight bounds the requests that hold a body at one time, and with it the memory: the API server sends a
	// few at once, only an attacker sends hundreds. Beyond it the answer is 503.
	maxInFlight = 256
	// maxIO bounds the reading of a body and the writing of an answer: the API server waits 30 s at most,
	// and whoever trickles bytes holds one of the places above.
	maxIO = 10 * time.Second
	// maxPooled is the largest buffer that is kept for the next request.
	maxPooled = 256 << 10
)

var buffers sync.Pool // of *bytes.Buffer

// ServeHTTP answers one AdmissionReview: 200 with a verdict if it could be read as one, else 400, 405, 413, 415 or 503
// with a line of text, which the API server counts as a failed call and, with failurePolicy Fail, as a refusal.
func (r *Reviewer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	start, traced := time.Now(), isTraced(req.Context())
	status := http.StatusOK
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("panic while serving a review", zap.Any(logkeys.Reason, p), zap.ByteString(logkeys.Stack, debug.Stack()))
			status = http.StatusInternalServerError
			http.Error(w, "internal error", status)
		}
		if traced {
			r.metrics.responded(status)
		}
	}()
	// A connection keeps its deadlines, so each request sets them. Not every ResponseWriter has them; the servers' do.
	control, deadline := http.NewResponseController(w), start.Add(maxIO)
	_ = control.SetReadDeadline(deadline)
	_ = control.SetWriteDeadline(deadline)
	body, ok := buffers.Get().(*bytes.Buffer)
	if !ok {
		body = new(bytes.Buffer)
	}
	defer func() {
		if body.Cap() <= maxPooled {
			buffers.Put(body)
		}
	}()
	var e *envelope
	select {
	case r.inFlight <- struct{}{}:
		defer func() { <-r.inFlight }()
		var err error
		if status, err = readBody(w, req, body); err == nil {
			if e, err = decodeReview(body.Bytes()); err != nil {
				status = http.StatusBadRequest
			}
		}
		if err != nil {
			r.log.Info("request refused", zap.String(logkeys.Address, req.RemoteAddr), zap.Int(logkeys.Code, status), zap.Error(err))
			http.Error(w, err.Error(), status)
			return
		}
	default:
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests at once", status)
		return
	}
	// The server's stop cancels its requests' contexts; a judgement takes less than a millisecond and is finished.
	res := r.answer(context.WithoutCancel(req.Context()), e)
	r.write(w, &e.request, &res)
	if traced {
		r.metrics.reviewed(res.Allowed, time.Since(start))
	}
}

// answer judges a review that was read. Most pods end in the first branch: what the envelope's reading has seen of
// the object's keys rules out that a full reading would find something to decide.
func (r *Reviewer) answer(ctx context.Context, e *envelope) Result {
	if !e.mayMatter && supported(&e.request) == nil && sameKind(e.apiVersion, e.kind, e.request.Kind) == nil {
		if snapshot, ok := r.engine.Active(); ok && !snapshot.NeedsObject() && scopeOf(snapshot) != nil {
			res := r.pass(&judgement{snapshot: snapshot})
			if isTraced(ctx) {
				r.metrics.decided(&res, false)
			}
			return res
		}
	}
	return r.Review(ctx, &e.request)
}

// readBody reads a request's body into body, and returns the status to answer with if it does not like it.
func readBody(w http.ResponseWriter, req *http.Request, body *bytes.Buffer) (int, error) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, fmt.Errorf("method %s is not POST", plain(req.Method, maxName))
	}
	if content := req.Header.Get("Content-Type"); content != "application/json" {
		if kind, _, err := mime.ParseMediaType(content); err != nil || kind != "application/json" {
			return http.StatusUnsupportedMediaType, fmt.Errorf("content type %s is not application/json", quote(content, maxName))
		}
	}
	if req.ContentLength > maxBody {
		return http.StatusRequestEntityTooLarge, fmt.Errorf("the body has %d bytes, the limit is %d", req.ContentLength, maxBody)
	}
	body.Reset()
	if req.ContentLength > 0 { // a length that was only announced takes no more memory than is kept anyway
		body.Grow(int(min(req.ContentLength, maxPooled-bytes.MinRead)) + bytes.MinRead)
	}
	if _, err := body.ReadFrom(http.MaxBytesReader(w, req.Body, maxBody)); err != nil {
		if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", tooLarge.Limit)
		}
		return http.StatusBadRequest, fmt.Errorf("read the body: %w", err)
	}
	return http.StatusOK, nil
}

var reviewType = metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}

func (r *Reviewer) write(w http.ResponseWriter, req *admissionv1.AdmissionRequest, res *Result) {
	text, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: reviewType, Response: res.Response(req.UID)})
	if err != nil {
		panic(fmt.Errorf("encode the response: %w", err)) // answered with 500 by the caller
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(text); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		r.log.Info("answer not written", zap.String(logkeys.UID, string(req.UID)), zap.Error(err))
	}
}
