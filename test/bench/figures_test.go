//go:build linux

package main

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const exposed = `# HELP x_seconds Time.
# TYPE x_seconds histogram
x_seconds_bucket{allowed="false",le="0.001"} 0
x_seconds_bucket{allowed="false",le="0.002"} 10
x_seconds_bucket{allowed="false",le="+Inf"} 10
x_seconds_sum{allowed="false"} 0.015
x_seconds_count{allowed="false"} 10
x_seconds_bucket{allowed="true",le="0.001"} 80
x_seconds_bucket{allowed="true",le="0.002"} 80
x_seconds_bucket{allowed="true",le="+Inf"} 90
x_seconds_sum{allowed="true"} 1
x_seconds_count{allowed="true"} 90
x_seconds_other{le="0.001"} 7
said{what="a } b", why="c d"} 1.5e+01 1700000000000
`

func parsed(t *testing.T, text string) exposition {
	t.Helper()
	e, err := parseExposition(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestExpositionIsReadWithItsLabels(t *testing.T) {
	e := parsed(t, exposed)
	if got := e[`said{what="a } b", why="c d"}`]; got != 15 {
		t.Errorf("got %v of %v", got, e)
	}
	if got := e.sum("x_seconds_count"); got != 100 {
		t.Errorf("the sum over labels is %v", got)
	}
}

func TestExpositionWithoutAValueIsRefused(t *testing.T) {
	for _, text := range []string{"x", `x{a="b"}`, "x y", `x{a="b"} y`} {
		if e, err := parseExposition(text); err == nil {
			t.Errorf("%q was read as %v", text, e)
		}
	}
}

func TestHistogramIsThatOfAllLabels(t *testing.T) {
	h := parsed(t, exposed).histogram("x_seconds")
	if diff := cmp.Diff(map[float64]float64{0.001: 80, 0.002: 90, math.Inf(1): 100}, h.buckets); diff != "" {
		t.Error(diff)
	}
	if got := h.share(time.Millisecond); got != 0.8 {
		t.Errorf("%v are within a millisecond", got)
	}
	for _, c := range []struct {
		q                      float64
		estimate, lower, upper time.Duration
	}{
		{0.4, 500 * time.Microsecond, 0, time.Millisecond},
		{0.85, 1500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond},
		{0.99, 2 * time.Millisecond, 2 * time.Millisecond, math.MaxInt64},
	} {
		estimate, lower, upper := h.quantile(c.q)
		if estimate != c.estimate || lower != c.lower || upper != c.upper {
			t.Errorf("quantile %v is %s in %s to %s", c.q, estimate, lower, upper)
		}
	}
}

func TestHistogramCountsWhatCameInBetween(t *testing.T) {
	h := parsed(t, exposed).histogram("x_seconds")
	if left := h.minus(h); left.count != 0 || left.sum != 0 || left.buckets[0.001] != 0 {
		t.Errorf("nothing came, and %+v is left", left)
	}
	if twice := (histogram{}).plus(h).plus(h); twice.count != 200 || twice.buckets[0.002] != 180 {
		t.Errorf("twice the same is %+v", twice)
	}
}

func TestQuantilesAreValuesThatWereMeasured(t *testing.T) {
	var d []time.Duration
	for i := 100; i >= 1; i-- {
		d = append(d, time.Duration(i))
	}
	want := quantiles{Count: 100, P50: 50, P90: 90, P99: 99, Max: 100, Mean: 50}
	if diff := cmp.Diff(want, quantilesOf(d)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(quantiles{Count: 1, P50: 7, P90: 7, P99: 7, Max: 7, Mean: 7}, quantilesOf([]time.Duration{7})); diff != "" {
		t.Error(diff)
	}
	if d[0] != 100 {
		t.Error("the durations were put in another order")
	}
}

func TestAddedComparesNeighbours(t *testing.T) {
	// The machine becomes slower by 100 from block to block, for both alike.
	base := &created{Blocks: []time.Duration{100, 200, 300}, All: quantiles{P99: 310}}
	variant := &created{Blocks: []time.Duration{103, 205, 304}, All: quantiles{P99: 330}}
	if p50, p99 := added(base, variant); p50 != 4 || p99 != 20 {
		t.Errorf("got %d and %d", p50, p99)
	}
}
