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

	"github.com/pipeguard/pipeguard/internal/admission/intake"
	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
	"github.com/pipeguard/pipeguard/internal/logkeys"
)

const (
	// maxBody bounds a request: the API server takes objects of up to 3 MiB as JSON, and Pods with their history
	// stay far below half of that, so an update, which carries two, fits as well.
	maxBody = 3 << 20
	// maxWrite bounds the writing of an answer.
	maxWrite = 10 * time.Second
	// maxPooled is the largest buffer that is kept for the next request.
	maxPooled = 256 << 10
)

var buffers sync.Pool // of *bytes.Buffer

// ServeHTTP answers one AdmissionReview: 200 with a verdict if it could be read as one, else 400, 405, 408, 413, 415 or 503
// with a line of text, which the API server counts as a failed call and, with failurePolicy Fail, as a refusal. A review
// that is too large to be judged, or too heavy while others are, is refused by verdict, which counts whatever the failurePolicy is.
func (r *Reviewer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	start, traced := time.Now(), isTraced(req.Context())
	status := http.StatusOK
	defer func() {
		if p := recover(); p != nil {
			r.o.Log.Error("panic while serving a review", zap.Any(logkeys.Reason, p), zap.ByteString(logkeys.Stack, debug.Stack()))
			status = http.StatusInternalServerError
			http.Error(w, "internal error", status)
		}
		if traced {
			r.o.Metrics.responded(status)
		}
	}()
	body, ok := buffers.Get().(*bytes.Buffer)
	if !ok {
		body = new(bytes.Buffer)
	}
	defer func() {
		if body.Cap() <= maxPooled {
			buffers.Put(body)
		}
	}()
	var answer *admissionv1.AdmissionResponse
	err := checkHead(w, req)
	if err == nil {
		var place *intake.Place
		if place, err = r.desk.Read(w, req, body); err == nil {
			defer place.Leave()
		}
		if errors.Is(err, intake.ErrNoTurn) {
			w.Header().Set("Connection", "close") // the rest of the body is not read
		}
		answer, err = r.answer(req, place, body.Bytes(), err)
	}
	// A connection keeps its deadlines, so each request sets them. Not every ResponseWriter has them; the servers' do.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(maxWrite))
	if err != nil {
		status = r.turnAway(w, req, err)
		return
	}
	r.write(w, answer)
	if traced {
		r.o.Metrics.reviewed(answer.Allowed, time.Since(start))
	}
}

// httpError is an error with the status to answer with.
type httpError struct {
	status int
	error
}

// answer judges the review in a body that has a place, or whose reading ended with err. Of a heavy one, nothing but the body is held while it waits for its
// turn, nor of any but the answer when the turn is over.
func (r *Reviewer) answer(req *http.Request, place *intake.Place, body []byte, err error) (*admissionv1.AdmissionResponse, error) {
	ctx := req.Context() // which ends when the client leaves
	switch {
	case errors.Is(err, intake.ErrTooLarge):
		return r.unread(ctx, body, ReasonSize, &httpError{http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", maxBody)})
	case errors.Is(err, intake.ErrNoTurn):
		return r.unread(ctx, body, ReasonOverload, &httpError{intake.Status(err), errNoTurn})
	case err != nil:
		return nil, &httpError{intake.Status(err), fmt.Errorf("read the body: %w", err)}
	}
	ctx = atPlace(ctx, place)
	answer, err := r.attempt(ctx, body, lightReview)
	if !errors.Is(err, jsonscan.ErrAllowance) {
		return answer, err
	}
	tenant := tenantOf(body)
	if !place.Stay(tenant) {
		return r.unread(ctx, body, ReasonOverload, &httpError{intake.Status(intake.ErrBusy), errNoPlace})
	}
	place.Wait()
	done, err := r.turns.Take(ctx, intake.Host(req.RemoteAddr), tenant)
	switch {
	case err != nil && ctx.Err() != nil: // the client has left
		return nil, &httpError{intake.Status(intake.ErrBusy), err}
	case err != nil:
		return r.unread(ctx, body, ReasonOverload, &httpError{intake.Status(intake.ErrBusy), errNoTurn})
	}
	defer done()
	if answer, err = r.attempt(ctx, body, heavyReview); errors.Is(err, jsonscan.ErrAllowance) {
		return r.unread(ctx, body, ReasonSize, &httpError{http.StatusRequestEntityTooLarge, errTooHeavy})
	}
	return answer, err
}

// attempt judges the review in a body, or returns jsonscan.ErrAllowance if that would take more memory than it may. It leaves no trace then.
// A heavy review that takes too much is refused, unless it is so before its object is read.
func (r *Reviewer) attempt(ctx context.Context, body []byte, most int) (*admissionv1.AdmissionResponse, error) {
	a := jsonscan.Allow(most)
	e, err := decodeReview(body, a)
	if err != nil {
		return nil, err
	}
	res, ok := r.judged(ctx, e, a, most < heavyReview)
	if !ok {
		return nil, jsonscan.ErrAllowance
	}
	return res.Response(e.request.UID), nil
}

// turnAway answers a request that is not a review, and returns the status. It ends the connection if part of the body may
// be unread.
func (r *Reviewer) turnAway(w http.ResponseWriter, req *http.Request, err error) int {
	status := http.StatusBadRequest
	if h, ok := errors.AsType[*httpError](err); ok {
		status = h.status
	}
	switch status {
	case http.StatusServiceUnavailable, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge:
		w.Header().Set("Connection", "close")
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	} else {
		r.o.Log.Info("request refused", zap.String(logkeys.Address, req.RemoteAddr), zap.Int(logkeys.Code, status), zap.Error(err))
	}
	http.Error(w, err.Error(), status)
	return status
}

// judged judges a review that was read. Most pods end in the first branch: what the envelope's reading has seen of
// the object's keys rules out that a full reading would find something to decide.
func (r *Reviewer) judged(ctx context.Context, e *envelope, a *jsonscan.Allowance, again bool) (res Result, ok bool) {
	if !e.mayMatter && supported(&e.request) == nil && sameKind(e.apiVersion, e.kind, e.request.Kind) == nil {
		if snapshot, ok := r.o.Engine.Active(); ok && !snapshot.NeedsObject() && scopeOf(snapshot) != nil {
			res := r.pass(&judgement{snapshot: snapshot})
			if isTraced(ctx) {
				r.o.Metrics.decided(&res, false)
			}
			return res, true
		}
	}
	return r.review(ctx, &e.request, a, again)
}

// unread refuses a review that was not read to its end, by what its beginning calls it; err is the answer if it does not.
func (r *Reviewer) unread(ctx context.Context, body []byte, reason string, err *httpError) (*admissionv1.AdmissionResponse, error) {
	e := beginningOf(body)
	if e == nil {
		return nil, err
	}
	j := judgement{start: r.o.Now()}
	res := r.refuse(&e.request, &j, cannotJudge(reason, http.StatusForbidden, err.error))
	if isTraced(ctx) {
		r.o.Log.Warn("object refused without a decision", zap.String(logkeys.UID, string(e.request.UID)),
			zap.String(logkeys.AuditID, res.DecisionID), zap.String(logkeys.Reason, reason), zap.Error(err.error))
		r.record(ctx, &e.request, &j, &res)
		r.o.Metrics.decided(&res, false)
	}
	return res.Response(e.request.UID), nil
}

// checkHead refuses requests whose method or content type is not that of a review.
func checkHead(w http.ResponseWriter, req *http.Request) error {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return &httpError{http.StatusMethodNotAllowed, fmt.Errorf("method %s is not POST", plain(req.Method, maxName))}
	}
	if content := req.Header.Get("Content-Type"); content != "application/json" {
		if kind, _, err := mime.ParseMediaType(content); err != nil || kind != "application/json" {
			return &httpError{http.StatusUnsupportedMediaType, fmt.Errorf("content type %s is not application/json", quote(content, maxName))}
		}
	}
	return nil
}

var reviewType = metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}

func (r *Reviewer) write(w http.ResponseWriter, answer *admissionv1.AdmissionResponse) {
	text, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: reviewType, Response: answer})
	if err != nil {
		panic(fmt.Errorf("encode the response: %w", err)) // answered with 500 by the caller
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(text); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		r.o.Log.Info("answer not written", zap.String(logkeys.UID, string(answer.UID)), zap.Error(err))
	}
}
