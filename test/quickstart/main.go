package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/pipeguard/pipeguard/test/harness"
)

// limit ends a run that hangs, with the logs of the programs. A first build takes most of the time.
const limit = 8 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, limit)
	ok := run(ctx, os.Stdout)
	cancel()
	stop()
	if !ok {
		os.Exit(1)
	}
}

// run tells the whole story and returns whether all of it went as announced.
func run(ctx context.Context, out io.Writer) bool {
	began := time.Now()
	s := &story{out: out, isColor: isTerminal(out)}
	s.printf("%s\n", s.paint("1", "Pipeguard, end to end on this machine"))
	s.printf("%s\n", wrap(introduction, 100, ""))
	err := tell(ctx, s)
	s.chapter("Summary")
	if err != nil {
		s.failed = append(s.failed, err.Error())
	}
	for _, f := range s.failed {
		s.printf("%s %s\n", s.paint("31", "FAILED:"), f)
	}
	s.printf("%d steps, %d not as expected, in %.1f s\n", s.steps, len(s.failed), time.Since(began).Seconds())
	if len(s.failed) == 0 {
		s.printf("%s\n", next)
	}
	return len(s.failed) == 0
}

const introduction = `Pods on Windows nodes reach privileged host services through named pipes. Pipeguard's webhook decides which
pods get such a pipe, its proxy which calls may be made on it, and both leave a record. This program starts both, talks to them as
a cluster and a storage driver would, and checks every answer. Nothing here needs a cluster or Windows: the proxy acts on
a host that exists in memory only. It uses loopback addresses, unix sockets and a temporary directory.`

const next = `
To go on: README.md, "Use it", does the same by hand; docs/rules.md explains the codes, docs/authors-guide.md how to write
rules of your own, docs/reviewers-guide.md how to read records; "go run ./test/incident DIR" leaves the log of the incident to read.`

// tell sets the stage, tells the chapters and clears up. Its error is one of the stage.
func tell(ctx context.Context, s *story) (err error) {
	if runtime.GOOS == "windows" {
		return errors.New("this program uses unix sockets and SIGTERM; run it on Linux")
	}
	dir, err := os.MkdirTemp("", "pipeguard-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	st, err := setUp(ctx, s, dir)
	if err != nil {
		return err
	}
	defer st.clear(s)
	s.printf("\nThe webhook's parameters:\n\n")
	s.show(st.params)
	admission(ctx, s, st.webhook.api)
	s.printf("\nThe proxy's configuration; what it does not name is denied:\n\n")
	s.show(st.config)
	calls(ctx, s, node{st.programs, st.proxy.socketDir})
	bothEnds(ctx, s, st)
	st.stop(s)
	records(ctx, s, st)
	incident(ctx, s, st)
	return ctx.Err()
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// logsOf prints what the programs wrote, for whoever has to find out what went wrong.
func logsOf(s *story, processes ...*harness.Process) {
	for _, p := range processes {
		s.printf("\nLog of %s:\n", p.Name)
		s.show(p.Stdout.String() + p.Stderr.String())
	}
}
