package certs

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
)

var quiet = zap.NewNop()

const (
	day = 24 * time.Hour
	// slow and lag are how late API servers and replicas may hear of changes.
	slow, lag = 2*time.Minute - time.Second, 50 * time.Minute
)

// weeks make a life of an authority short enough to be tried many times.
func weeks(o *Options) {
	o.Authority, o.Leaf, o.Interval = 6*7*day, 14*day, 12*time.Hour
}

// settle is time for the first installation.
func settle() {
	time.Sleep(slow + lag)
	synctest.Wait()
}

// pass lets time pass and fails at the first request that could be missed.
func pass(t *testing.T, m *memory, d, step time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(step)
		synctest.Wait()
		if err := m.misses(slow, lag); err != nil {
			t.Fatal(err)
		}
	}
}

// watchWrites fails the test if a request could be missed right after any write.
func watchWrites(t *testing.T, m *memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onWrite = func(n int) {
		if err := m.misses(slow, lag); err != nil {
			t.Errorf("after write %d: %v", n, err)
		}
	}
}

// expectSettled fails unless there is one authority, and it is trusted everywhere.
func expectSettled(t *testing.T, m *memory) {
	t.Helper()
	s, faults := parse(m.content(), names.hosts(), time.Now())
	if len(faults) > 0 || s.current == nil || s.current.key == nil || s.next != nil || len(s.previous) > 0 || s.leaf == nil {
		t.Fatalf("not settled: %+v, %v", s, faults)
	}
	for _, name := range names.Configurations {
		if c := m.configuration(name); c.Exists() && !c.holds(encodeCertificates(s.trusted())) {
			t.Errorf("configuration %s: %s", name, c.Webhooks)
		}
	}
}

// lead runs a Rotator until the returned function is called.
func lead(t *testing.T, store Store, change ...func(*Options)) (stop func()) {
	t.Helper()
	return leadWith(t.Context(), t, store, change...)
}

// leadWith runs one that may also die with ctx.
func leadWith(ctx context.Context, t *testing.T, store Store, change ...func(*Options)) (stop func()) {
	t.Helper()
	o := Options{Names: names, Store: store}
	for _, f := range change {
		f(&o)
	}
	r, err := NewRotator(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- r.Start(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// measured is a metric's value.
func measured(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetGauge().GetValue() + out.GetCounter().GetValue()
}
