package admission

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/turns"
	"github.com/pipeguard/pipeguard/test/pods"
)

// series is every series of a registry with its value, without those that are always there.
func series(t *testing.T, from prometheus.Gatherer) string {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			fmt.Fprintln(&b, f.GetName(), m.String())
		}
	}
	return b.String()
}

func TestAReviewWithoutTraceLeavesNone(t *testing.T) {
	engine := newEngine(t, DefaultParameters(), nil)
	broken := false
	kept, reg := &ledger{}, prometheus.NewRegistry()
	core, lines := observer.New(zap.DebugLevel)
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) {
		o.Engine, o.Audit, o.Metrics, o.Log = failing{engine, &broken}, kept, NewMetrics(reg), zap.New(core)
	})
	before := series(t, reg)
	ctx := WithoutTrace(t.Context())
	bodies := [][]byte{
		reviewBody(t, createRequest(t, testPod(csiPipe))), reviewBody(t, createRequest(t, testPod())), reviewBody(t, updateRequest(t, admittedPod(), admittedPod())),
		[]byte(envelopeWith(`"operation":"DELETE"`)),
	}
	for _, broken = range []bool{false, true} {
		for _, body := range bodies {
			req, err := DecodeReview(body)
			if err != nil {
				t.Fatal(err)
			}
			r.Review(ctx, req)
			w := httptest.NewRecorder()
			q := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(string(body)))
			q.Header.Set("Content-Type", "application/json")
			r.ServeHTTP(w, q)
		}
	}
	broken = false
	if err := r.Canary(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(kept.events) > 0 || lines.Len() > 0 {
		t.Errorf("%d records, %d lines", len(kept.events), lines.Len())
	}
	if after := series(t, reg); after != before {
		t.Errorf("metrics were\n%s\nare\n%s", before, after)
	}

	if res := r.Review(t.Context(), createRequest(t, testPod(csiPipe))); res.Allowed || len(kept.events) != 1 || series(t, reg) == before {
		t.Error("a review with trace left none")
	}
}

// An error in the log is all that is known of a panic.
func TestAPanicIsLoggedEvenWithoutTrace(t *testing.T) {
	core, lines := observer.New(zap.DebugLevel)
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) {
		o.Log = zap.New(core)
		o.Engine = faultyEngine{newEngine(t, DefaultParameters(), nil), func() (policy.Decision, error) { panic("oh") }}
	})
	if res := r.Review(WithoutTrace(t.Context()), createRequest(t, testPod(csiPipe))); res.Allowed || lines.Len() != 1 {
		t.Errorf("allowed %t, %d lines", res.Allowed, lines.Len())
	}
}

// scopeless is an engine whose policies came without a scope.
func scopeless(t *testing.T) *policy.Engine {
	t.Helper()
	engine := newIdleEngine(t)
	if _, err := engine.Activate(t.Context(), policyOf(allowAll)); err != nil {
		t.Fatal(err)
	}
	return engine
}

func TestPoliciesWithoutScopeAdmitNothing(t *testing.T) {
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = scopeless(t) })
	for _, p := range []string{csiPipe, `C:\data`} {
		if _, answer := post(t, r, reviewBody(t, createRequest(t, testPod(p)))); answer.Allowed || !strings.Contains(answer.Result.Message, "("+ReasonScope+")") {
			t.Errorf("%s: %+v", p, answer)
		}
	}
	if _, answer := post(t, r, reviewBody(t, createRequest(t, pods.Plain(t)))); answer.Allowed {
		t.Error("a pod with nothing to decide was admitted")
	}
	if err := r.Canary(t.Context()); err == nil {
		t.Error("its canaries were refused, as it seems")
	}
}

// Each review is of one snapshot: what is extracted is what its policies decide about.
func TestAReviewDecidesWithTheSnapshotThatItExtractedBy(t *testing.T) {
	engine := newEngine(t, DefaultParameters(), map[string]string{})
	other := DefaultParameters()
	other.GuardedPipes = []string{"other"}
	next := bound(t, Policies{Parameters: other}, policyOf(`decision := {"allowed": true, "findings": []}`))
	next.Checks = nil
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) {
		o.Engine = activeOnce{engine, func() {
			if _, err := engine.Activate(t.Context(), next); err != nil {
				t.Error(err)
			}
		}}
	})
	if res := r.Review(t.Context(), createRequest(t, testPod(csiPipe))); res.Allowed || res.Code != "PG001" {
		t.Errorf("allowed %t, %s", res.Allowed, res.Code)
	}
}

// activeOnce replaces its policies as soon as it has told which are active.
type activeOnce struct {
	*policy.Engine
	then func()
}

func (e activeOnce) Active() (policy.Snapshot, bool) {
	s, ok := e.Engine.Active()
	e.then()
	return s, ok
}

func (e activeOnce) DecideAbout(ctx context.Context, s policy.Snapshot, sender turns.Sender, q policy.Question) (policy.Decision, error) {
	return e.Engine.DecideAbout(ctx, s, sender, q)
}
