//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pipeguard/pipeguard/test/bench/benchfmt"
	"github.com/pipeguard/pipeguard/test/bench/process"
)

// ask sends one review, and returns an error unless the answer is the right one.
func (s *server) ask(ctx context.Context, of *sample) error {
	body, uid := of.next()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(answer, &review); err != nil || review.Response == nil || string(review.Response.UID) != uid {
		return fmt.Errorf("status %d: %.300s", response.StatusCode, bytes.TrimSpace(answer))
	}
	if want := of.allowed || !s.judges; review.Response.Allowed != want {
		return fmt.Errorf("allowed is %v: %.300s", !want, answer)
	}
	return nil
}

// figures are those of one server and sample, for each turn.
type figures struct {
	cpu   []float64 // µs of the server's process a review
	rates []float64 // reviews a second
}

// add has a number of workers ask one after another for a while.
func (f *figures) add(ctx context.Context, s *server, of *sample, workers int, turn time.Duration) error {
	cpu, err := process.CPU(s.PID())
	if err != nil {
		return err
	}
	began := time.Now()
	n, err := s.askFor(ctx, of, workers, func(int64) bool { return time.Since(began) < turn })
	if err != nil {
		return err
	}
	took := time.Since(began)
	after, err := process.CPU(s.PID())
	if err != nil {
		return err
	}
	f.cpu = append(f.cpu, float64((after-cpu).Nanoseconds())/1e3/float64(n))
	f.rates = append(f.rates, float64(n)/took.Seconds())
	return nil
}

// askFor asks as long as it is to go on, which it asks with the number of reviews before, and returns how many were answered.
func (s *server) askFor(ctx context.Context, of *sample, workers int, goOn func(n int64) bool) (n int64, err error) {
	var count, done atomic.Int64
	faults := make([]error, workers)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for goOn(count.Add(1)-1) && faults[i] == nil {
				if faults[i] = s.ask(ctx, of); faults[i] == nil {
					done.Add(1)
				}
			}
		})
	}
	all.Wait()
	if err := errors.Join(faults...); err != nil {
		return 0, fmt.Errorf("%s, %s: %w", s.name, of.name, err)
	}
	return max(1, done.Load()), nil
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// measure prints a row for each sample, concurrency and server.
func (o options) measure(ctx context.Context, all servers, s size, out io.Writer) error {
	list, err := samples()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprint(out, "| review | bytes | at once | server | CPU | to the yes-sayer's | to Gatekeeper's | reviews a second | of the yes-sayer's |\n|---|--:|--:|---|--:|--:|--:|--:|--:|\n")
	for i := range list {
		of := &list[i]
		if !strings.Contains(of.name, o.only) {
			continue
		}
		for _, workers := range []int{1, 16} {
			found := make([]figures, len(all))
			for _, server := range all {
				if _, err := server.askFor(ctx, of, workers, func(n int64) bool { return n < int64(s.warmUp) }); err != nil {
					return err
				}
			}
			for range s.turns {
				for j, server := range all {
					if err := found[j].add(ctx, server, of, workers, s.turn); err != nil {
						return err
					}
				}
			}
			if err := o.write(out, all, found, of, workers); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o options) write(out io.Writer, all servers, found []figures, of *sample, workers int) error {
	ratio := func(figure func(figures) []float64, mine int, to string) string {
		i := slices.IndexFunc(all, func(s *server) bool { return s.name == to })
		if i < 0 || all[mine].name == to {
			return ""
		}
		return fmt.Sprintf("%.2f", median(figure(found[mine]))/median(figure(found[i])))
	}
	cpu, rates := func(f figures) []float64 { return f.cpu }, func(f figures) []float64 { return f.rates }
	for i, s := range all {
		_, _ = fmt.Fprintf(out, "| %s | %d | %d | %s | %.0f µs | %s | %s | %.0f | %s |\n", of.name, len(of.text), workers, s.name,
			median(found[i].cpu), ratio(cpu, i, yesSayer), ratio(cpu, i, gatekeeper), median(found[i].rates), ratio(rates, i, yesSayer))
		if s.name != pipeguard {
			continue
		}
		name := []string{"Review", of.name, fmt.Sprintf("callers=%d", workers)}
		of := median(found[i].cpu) / median(found[slices.IndexFunc(all, func(s *server) bool { return s.name == yesSayer })].cpu)
		if err := benchfmt.Append(o.lines, "test/bench/review", name, len(found[i].cpu),
			benchfmt.Figure{Value: 1e3 * median(found[i].cpu), Unit: "cpu-ns/op"}, benchfmt.Figure{Value: of, Unit: "of-yes-sayer"}); err != nil {
			return err
		}
	}
	return nil
}
