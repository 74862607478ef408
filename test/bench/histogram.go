//go:build linux

package main

import (
	"bufio"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// exposition is what /metrics says: values by name with labels, as written.
type exposition map[string]float64

// parseExposition reads the text format: https://prometheus.io/docs/instrumenting/exposition_formats/.
func parseExposition(text string) (exposition, error) {
	out := exposition{}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		end := strings.LastIndexByte(line, '}') + 1 // labels may contain spaces
		space := strings.IndexByte(line[end:], ' ')
		if space < 0 {
			return nil, fmt.Errorf("metric %q has no value", line)
		}
		fields := strings.Fields(line[end+space:])
		value, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", line, err)
		}
		out[line[:end+space]] = value
	}
	return out, lines.Err()
}

// sum adds the values of a name over all labels.
func (e exposition) sum(name string) (total float64) {
	for key, value := range e {
		if before, _, _ := strings.Cut(key, "{"); before == name {
			total += value
		}
	}
	return total
}

// histogram counts observations in seconds by upper bound, cumulatively.
type histogram struct {
	sum     float64
	count   float64
	buckets map[float64]float64
}

// histogram adds the histograms of a name over all labels but le.
func (e exposition) histogram(name string) histogram {
	h := histogram{sum: e.sum(name + "_sum"), count: e.sum(name + "_count"), buckets: map[float64]float64{}}
	for key, value := range e {
		labels, ok := strings.CutPrefix(key, name+"_bucket{")
		if !ok {
			continue
		}
		_, text, _ := strings.Cut(labels, `le="`)
		text, _, _ = strings.Cut(text, `"`)
		if bound, err := strconv.ParseFloat(text, 64); err == nil {
			h.buckets[bound] += value
		}
	}
	return h
}

// plus and minus combine histograms of the same buckets.
func (h histogram) plus(o histogram) histogram  { return h.combine(o, 1) }
func (h histogram) minus(o histogram) histogram { return h.combine(o, -1) }

func (h histogram) combine(o histogram, sign float64) histogram {
	out := histogram{sum: h.sum + sign*o.sum, count: h.count + sign*o.count, buckets: map[float64]float64{}}
	for bound, n := range h.buckets {
		out.buckets[bound] += n
	}
	for bound, n := range o.buckets {
		out.buckets[bound] += sign * n
	}
	return out
}

// quantile is estimated as Prometheus does: as if what is in a bucket were spread evenly. lower and upper are the bucket's
// bounds, which are certain.
func (h histogram) quantile(q float64) (estimate, lower, upper time.Duration) {
	var below, from float64
	for _, bound := range h.bounds() {
		n := h.buckets[bound]
		if n >= q*h.count && n > below {
			if math.IsInf(bound, 1) {
				return seconds(from), seconds(from), math.MaxInt64
			}
			return seconds(from + (bound-from)*(q*h.count-below)/(n-below)), seconds(from), seconds(bound)
		}
		below, from = n, bound
	}
	return 0, 0, 0
}

// share is the part of the observations that do not exceed one of the bounds.
func (h histogram) share(bound time.Duration) float64 {
	for _, b := range h.bounds() {
		if seconds(b) == bound && h.count > 0 {
			return h.buckets[b] / h.count
		}
	}
	return 0
}

func (h histogram) bounds() []float64 {
	var out []float64
	for bound := range h.buckets {
		out = append(out, bound)
	}
	slices.Sort(out)
	return out
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
