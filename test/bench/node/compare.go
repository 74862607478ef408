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

// variant is a way in which the proxy can keep records.
type variant struct {
	name, audit string
	flushes     bool
}

var variants = []variant{
	{"records encoded, thrown away", "-", false},
	{"records in a file, not flushed", "file", false},
	{"records in a file, flushed before the call", "file", true},
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

// compare measures each variant against the bare server, in turns; where records are flushed, also against calls of the bare server after each of which its
// caller flushes as many bytes as two records have.
func (s *stage) compare(ctx context.Context, out io.Writer) error {
	_, _ = fmt.Fprint(out, "| records | call | at once | bare: calls/s | p50 | p99 | CPU | guarded: calls/s | p50 | p99 | CPU | calls/s, of the bare server's | p50 added | bare, then one flush: calls/s | of these |\n"+
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, v := range variants {
		asked := slices.DeleteFunc(slices.Clone(calls), func(c call) bool { return !strings.Contains(v.name+", "+c.name, s.only) })
		if len(asked) == 0 {
			continue
		}
		if err := s.compareOne(ctx, out, v, asked); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return nil
}

func (s *stage) compareOne(ctx context.Context, out io.Writer, v variant, asked []call) error {
	bare, err := s.bare(ctx)
	if err != nil {
		return err
	}
	defer bare.Kill()
	guarded, err := s.guard(ctx, v.audit, v.flushes)
	if err != nil {
		return err
	}
	defer guarded.Kill()
	for _, c := range asked {
		for _, workers := range []int{1, 16} {
			row, err := s.row(ctx, bare, guarded, v, c, workers)
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(out, "| %s | %s | %d | %s |\n", v.name, c.name, workers, strings.Join(row, " | "))
		}
	}
	return nil
}

func (s *stage) row(ctx context.Context, bare, guarded *program.Server, v variant, asked call, workers int) (row []string, err error) {
	disk, err := newFlusher(s.dir, workers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	a, b, c := &samples{}, &samples{}, &samples{}
	for range s.turns {
		err := errors.Join(a.add(ctx, s.turn, bare, asked.do, workers), b.add(ctx, s.turn, guarded, asked.do, workers))
		if v.flushes {
			err = errors.Join(err, c.add(ctx, s.turn, bare, disk.after(asked.do), workers))
		}
		if err != nil {
			return nil, err
		}
	}
	if err := s.benchmark(v, asked, workers, a, b); err != nil {
		return nil, err
	}
	row = slices.Concat(a.cells(), b.cells(), []string{fmt.Sprintf("%.2f", b.rate()/a.rate()), us(b.at(50) - a.at(50))})
	if !v.flushes {
		return append(row, "", ""), nil
	}
	return append(row, fmt.Sprintf("%.0f", c.rate()), fmt.Sprintf("%.2f", b.rate()/c.rate())), nil
}

// samples are the latencies of calls, and the rates of the turns in which they were made.
type samples struct {
	latencies []time.Duration
	rates     []float64
	used      time.Duration // processor time of the server; 0 where it is not measured
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
	before, err := usedBy(to.PID())
	began := time.Now()
	close(begin)
	all.Wait()
	took := time.Since(began)
	after, err2 := usedBy(to.PID())
	s.used += after - before
	s.rates = append(s.rates, float64(total)/took.Seconds())
	s.sorted = false
	return errors.Join(append(errs, err, err2)...)
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

// cells are what a table says of them.
func (s *samples) cells() []string {
	cpu := "–"
	if s.used > 0 {
		cpu = us(s.cpu())
	}
	return []string{fmt.Sprintf("%.0f", s.rate()), us(s.at(50)), us(s.at(99)), cpu}
}

// cpu is the processor time of the server for a call; 0 where it is not measured.
func (s *samples) cpu() time.Duration { return s.used / time.Duration(max(1, len(s.latencies))) }

// at is a percentile of the latencies of all turns.
func (s *samples) at(percent int) time.Duration {
	if !s.sorted {
		slices.Sort(s.latencies)
		s.sorted = true
	}
	return s.latencies[min(len(s.latencies)-1, len(s.latencies)*percent/100)]
}

func us(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) + " µs" }
