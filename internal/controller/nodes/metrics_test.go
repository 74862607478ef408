package nodes

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

func TestNodesAreCountedByState(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	s := newServer()
	c := newCounter(s, atNoon)
	c.metrics = m
	later := func(n *v1alpha1.GuardedNode) { n.State = "Sleeping" }
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, `denying 0 guarding 0 local 0 silent 0 unreachable 0`},
		{func() {
			s.put(node("a"))
			s.put(node("b"))
			s.put(node("c", denies))
			s.put(node("d", isLocal))
			s.put(node("e", isDown))
			s.put(node("f", isQuiet))
			s.put(node("g", denies, isQuiet)) // it may be guarding by now
		}, `denying 1 guarding 2 local 1 silent 2 unreachable 1`},
		{func() { s.put(node("c")); s.put(node("h", later)) }, `denying 0 guarding 3 local 1 other 1 silent 2 unreachable 1`},
	} {
		step.do()
		if _, err := c.count(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := statesOf(t, registry); got != step.want {
			t.Errorf("%s, want %s", got, step.want)
		}
	}
}

// statesOf are the series in the order of their states.
func statesOf(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "pipeguard_guarded_nodes" {
		t.Fatalf("%v, %v", families, err)
	}
	var words []string
	for _, m := range families[0].GetMetric() {
		words = append(words, m.GetLabel()[0].GetValue(), strconv.Itoa(int(m.GetGauge().GetValue())))
	}
	return strings.Join(words, " ")
}

func TestEachTermOfTheLeaderCountsNodesAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		m, err := newMetrics(registry)
		if err != nil {
			t.Fatal(err)
		}
		s := newServer()
		c := newCounter(s, atNoon)
		c.metrics = m
		for term := range 2 {
			s.put(node(strconv.Itoa(term)))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- c.Start(ctx) }()
			synctest.Wait()
			if got, want := statesOf(t, registry), fmt.Sprintf("denying 0 guarding %d local 0 silent 0 unreachable 0", term+1); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if families, err := registry.Gather(); err != nil || len(families) != 0 {
				t.Errorf("series after the term: %v, %v", families, err)
			}
		}
	})
}
