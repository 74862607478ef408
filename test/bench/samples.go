//go:build linux

package main

import (
	"math"
	"slices"
	"time"
)

// quantiles are what is told of a set of durations.
type quantiles struct {
	Count int           `json:"count"`
	P50   time.Duration `json:"p50"`
	P90   time.Duration `json:"p90"`
	P99   time.Duration `json:"p99"`
	Max   time.Duration `json:"max"`
	Mean  time.Duration `json:"mean"`
}

func quantilesOf(d []time.Duration) quantiles {
	if len(d) == 0 {
		return quantiles{}
	}
	sorted := slices.Sorted(slices.Values(d))
	var sum time.Duration
	for _, v := range sorted {
		sum += v
	}
	return quantiles{
		Count: len(sorted), P50: rank(sorted, 0.5), P90: rank(sorted, 0.9), P99: rank(sorted, 0.99),
		Max: sorted[len(sorted)-1], Mean: sum / time.Duration(len(sorted)),
	}
}

// rank is the smallest value that at least the share q of sorted does not exceed.
func rank(sorted []time.Duration, q float64) time.Duration {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// median is that of a copy of d, 0 if there is none.
func median(d []time.Duration) time.Duration { return quantilesOf(d).P50 }
