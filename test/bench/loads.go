//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/pipeguard/pipeguard/test/bench/process"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// load is what reviews at the steady rate took.
type load struct {
	Review string `json:"review"`
	// While says what else was so.
	While string `json:"while,omitempty"`
	// Bytes is the length of a review.
	Bytes int `json:"bytes"`
	// Undecided is how many were refused without a decision.
	Undecided int `json:"undecided"`
	// Seen is from the moment at which a review was to be sent to its answer, with TLS and with what the sender is late.
	Seen quantiles `json:"seen"`
	// Served is from a review's headers to its answer as the webhook measures it, in its metric's buckets.
	Served served `json:"served"`
	// CPU of the webhook by review, TLS, records and garbage collection included.
	CPU time.Duration `json:"cpu"`
}

// served is read from a histogram. The estimates are spread evenly over a bucket; the bounds are certain.
type served struct {
	Mean     time.Duration `json:"mean"`
	P50      time.Duration `json:"p50"`
	P50Lower time.Duration `json:"p50_lower"`
	P50Upper time.Duration `json:"p50_upper"`
	P99      time.Duration `json:"p99"`
	P99Lower time.Duration `json:"p99_lower"`
	P99Upper time.Duration `json:"p99_upper"`
	// WithinMillisecond is the share of reviews that took no more than a millisecond.
	WithinMillisecond float64 `json:"within_millisecond"`
}

func servedOf(h histogram) (s served) {
	if h.count == 0 {
		return s
	}
	s.Mean = seconds(h.sum / h.count)
	s.P50, s.P50Lower, s.P50Upper = h.quantile(0.5)
	s.P99, s.P99Lower, s.P99Upper = h.quantile(0.99)
	s.WithinMillisecond = h.share(time.Millisecond)
	return s
}

// measuring collects blocks of one load.
type measuring struct {
	kind string
	body []byte
	took []time.Duration
	hist histogram
	cpu  time.Duration

	undecided int
}

const reviewDuration = "pipeguard_admission_review_duration_seconds"

// block sends reviews for a while.
func (m *measuring) block(ctx context.Context, s *stage, r *cluster.Replica, d time.Duration) error {
	before, err := reading(ctx, r)
	if err != nil {
		return err
	}
	cpu, err := process.CPU(r.PID())
	if err != nil {
		return err
	}
	took, undecided, err := s.asker.steadily(ctx, r.Address, m.body, m.kind != refused, d)
	if err != nil {
		return err
	}
	after, err := process.CPU(r.PID())
	if err != nil {
		return err
	}
	m.cpu += after - cpu
	m.undecided += undecided
	m.took = append(m.took, took...)
	now, err := reading(ctx, r)
	if err != nil {
		return err
	}
	m.hist = m.hist.plus(now.histogram(reviewDuration).minus(before.histogram(reviewDuration)))
	return nil
}

func (m *measuring) result(while string) load {
	return load{
		Review: m.kind, While: while, Bytes: len(m.body), Undecided: m.undecided, Seen: quantilesOf(m.took), Served: servedOf(m.hist),
		CPU: m.cpu / time.Duration(max(1, len(m.took))),
	}
}

// reading is what a replica's /metrics says now.
func reading(ctx context.Context, r *cluster.Replica) (exposition, error) {
	text, err := r.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	return parseExposition(text)
}

// loads sends reviews of each kind by turns to the one core.
func loads(ctx context.Context, s *stage, f *figures) error {
	some := make([]*measuring, len(kinds))
	for i, kind := range kinds {
		body, err := s.reviewOf(ctx, kind)
		if err != nil {
			return err
		}
		some[i] = &measuring{kind: kind, body: body}
		if err := (&measuring{kind: kind, body: body}).block(ctx, s, s.first(), s.size.loadBlock/4); err != nil { // warms up
			return err
		}
	}
	if err := process.ResetMost(s.first().PID()); err != nil {
		return err
	}
	for range s.size.loadRounds {
		for _, m := range some {
			if err := m.block(ctx, s, s.first(), s.size.loadBlock); err != nil {
				return err
			}
		}
	}
	for _, m := range some {
		f.Loads = append(f.Loads, m.result(""))
	}
	return f.remember(fmt.Sprintf("%d reviews/s", rate), s.first())
}

// loadWhile sends reviews of a kind while something else is so or goes on.
func loadWhile(ctx context.Context, s *stage, f *figures, kind, while string, d time.Duration) error {
	body, err := s.reviewOf(ctx, kind)
	if err != nil {
		return err
	}
	m := &measuring{kind: kind, body: body}
	if err := m.block(ctx, s, s.first(), d); err != nil {
		return err
	}
	f.Loads = append(f.Loads, m.result(while))
	return nil
}
