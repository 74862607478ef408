package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/test/bench/program"
)

// variants are the ways in which the proxy can keep records.
var variants = []struct {
	name, audit string
	noSync      bool
}{
	{"records encoded, thrown away", "-", false},
	{"records in a file, not flushed", "file", true},
	{"records in a file, flushed before the call", "file", false},
}

// call is something that is asked.
type call struct {
	name string
	do   func(context.Context, v1.FilesystemClient, int) error
}

var calls = []call{
	{"PathExists", func(ctx context.Context, c v1.FilesystemClient, n int) error {
		_, err := c.PathExists(ctx, &v1.PathExistsRequest{Path: path(n)})
		return err
	}},
	{"Mkdir", func(ctx context.Context, c v1.FilesystemClient, n int) error {
		_, err := c.Mkdir(ctx, &v1.MkdirRequest{Path: path(n)})
		return err
	}},
}

// path is a path of usual length; callers that work at once have one each.
func path(n int) string { return workingDir + `\plugins\kubernetes.io\csi\volume-` + strconv.Itoa(n) }

// compare measures each variant against the bare server, in turns.
func (s *stage) compare(ctx context.Context, out io.Writer) error {
	_, _ = fmt.Fprint(out, "| records | call | at once | bare: calls/s | p50 | p99 | guarded: calls/s | p50 | p99 | calls/s, of the bare server's | p50 added |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, variant := range variants {
		if !slices.ContainsFunc(calls, func(c call) bool { return strings.Contains(variant.name+", "+c.name, s.only) }) {
			continue
		}
		bare, err := s.bare(ctx)
		if err != nil {
			return err
		}
		guarded, err := s.guard(ctx, variant.audit, variant.noSync)
		if err != nil {
			bare.Kill()
			return err
		}
		for _, call := range calls {
			if !strings.Contains(variant.name+", "+call.name, s.only) {
				continue
			}
			for _, workers := range []int{1, 16} {
				a, b := &samples{}, &samples{}
				for range s.turns {
					if err := errors.Join(a.add(ctx, s.turn, bare, call.do, workers), b.add(ctx, s.turn, guarded, call.do, workers)); err != nil {
						bare.Kill()
						guarded.Kill()
						return fmt.Errorf("%s: %w", variant.name, err)
					}
				}
				_, _ = fmt.Fprintf(out, "| %s | %s | %d | %.0f | %s | %s | %.0f | %s | %s | %.2f | %s |\n", variant.name, call.name, workers,
					a.rate(), us(a.at(50)), us(a.at(99)), b.rate(), us(b.at(50)), us(b.at(99)), b.rate()/a.rate(), us(b.at(50)-a.at(50)))
			}
		}
		bare.Kill()
		guarded.Kill()
	}
	return nil
}

// samples are the latencies of calls, and the rates of the turns in which they were made.
type samples struct {
	latencies []time.Duration
	rates     []float64
	sorted    bool
}

// add makes calls for one turn, each worker one after another on a connection of its own. The first calls of a turn,
// which open the connection, do not count.
func (s *samples) add(ctx context.Context, turn time.Duration, to *program.Server, do func(context.Context, v1.FilesystemClient, int) error, workers int) error {
	var mu sync.Mutex
	var errs []error
	var all, ready sync.WaitGroup
	begin := make(chan struct{})
	total := 0
	for n := range workers {
		ready.Add(1)
		all.Go(func() {
			connection, err := to.Connect()
			if err == nil {
				err = do(ctx, v1.NewFilesystemClient(connection), n)
			}
			ready.Done()
			var mine []time.Duration
			if err == nil {
				<-begin
				mine, err = work(ctx, connection, turn, do, n)
			}
			if connection != nil {
				_ = connection.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
			s.latencies = append(s.latencies, mine...)
			total += len(mine)
		})
	}
	ready.Wait()
	began := time.Now()
	close(begin)
	all.Wait()
	s.rates = append(s.rates, float64(total)/time.Since(began).Seconds())
	s.sorted = false
	return errors.Join(errs...)
}

func work(ctx context.Context, connection *grpc.ClientConn, turn time.Duration, do func(context.Context, v1.FilesystemClient, int) error, n int) ([]time.Duration, error) {
	client := v1.NewFilesystemClient(connection)
	var latencies []time.Duration
	for end := time.Now().Add(turn); ; {
		began := time.Now()
		if !began.Before(end) {
			return latencies, nil
		}
		if err := do(ctx, client, n); err != nil {
			return latencies, err
		}
		latencies = append(latencies, time.Since(began))
	}
}

// rate is the median of the turns, in calls per second.
func (s *samples) rate() float64 {
	rates := slices.Sorted(slices.Values(s.rates))
	return rates[len(rates)/2]
}

// at is a percentile of the latencies of all turns.
func (s *samples) at(percent int) time.Duration {
	if !s.sorted {
		slices.Sort(s.latencies)
		s.sorted = true
	}
	return s.latencies[min(len(s.latencies)-1, len(s.latencies)*percent/100)]
}

func us(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) + " µs" }
