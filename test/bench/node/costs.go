package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/test/bench/benchfmt"
	"github.com/pipeguard/pipeguard/test/bench/program"
)

// start measures the time from the start of the process to its first answer.
func (s *stage) start(ctx context.Context, out io.Writer) error {
	began := map[string][]time.Duration{}
	for range s.starts {
		for _, one := range []struct {
			name  string
			start func() (*program.Server, error)
		}{
			{"bare server, 1 pipe", func() (*program.Server, error) { return s.bare(ctx) }},
			{"proxy, all pipes", func() (*program.Server, error) { return s.guard(ctx, "file", true) }},
		} {
			running, err := one.start()
			if err != nil {
				return err
			}
			began[one.name] = append(began[one.name], running.Began)
			running.Kill()
		}
	}
	_, _ = fmt.Fprintf(out, "\n| from the start of the process to the first answer, of %d | median | slowest |\n|---|---|---|\n", s.starts)
	for _, name := range []string{"bare server, 1 pipe", "proxy, all pipes"} {
		times := began[name]
		slices.Sort(times)
		median := times[len(times)/2]
		_, _ = fmt.Fprintf(out, "| %s | %s | %s |\n", name, median.Round(time.Millisecond/10), times[len(times)-1].Round(time.Millisecond/10))
		if err := benchfmt.Append(s.lines, "test/bench/node", []string{"Start", name}, s.starts, benchfmt.Figure{Value: float64(median), Unit: "ns/op"}); err != nil {
			return err
		}
	}
	return nil
}

// memory opens connections of which each makes a call, and asks the system what the proxy holds.
func (s *stage) memory(ctx context.Context, out io.Writer) (err error) {
	_, _ = fmt.Fprint(out, "\n| resident memory | without connections | with "+fmt.Sprint(s.connections)+", after a call on each |\n|---|---|---|\n")
	for _, one := range []struct {
		name  string
		start func() (*program.Server, error)
	}{
		{"bare server", func() (*program.Server, error) { return s.bare(ctx) }},
		{"proxy", func() (*program.Server, error) { return s.guard(ctx, "file", false) }},
	} {
		running, err := one.start()
		if err != nil {
			return err
		}
		row := []string{one.name, resident(running.PID())}
		var open []*grpc.ClientConn
		for range s.connections {
			connection, err := running.Connect()
			if err != nil {
				running.Kill()
				return err
			}
			open = append(open, connection)
			if _, err := v1.NewFilesystemClient(connection).PathExists(ctx, &v1.PathExistsRequest{Path: workingDir}); err != nil {
				running.Kill()
				return fmt.Errorf("connection %d: %w", len(open), err)
			}
		}
		row = append(row, resident(running.PID()))
		for _, connection := range open {
			_ = connection.Close()
		}
		running.Kill()
		_, _ = fmt.Fprintln(out, "| "+strings.Join(row, " | ")+" |")
	}
	return nil
}
