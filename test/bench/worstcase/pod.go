//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pipeguard/pipeguard/test/harness"
)

// pod are the processes of the hostile pod.
type pod []*harness.Process

// attack starts the hostile pod: this program under another name, which no rule has.
func (s *stage) attack(name string, r *running) (pod, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	stranger := filepath.Join(s.dir, "stranger")
	if err := copyProgram(self, stranger); err != nil {
		return nil, err
	}
	var p pod
	begin := func(name, pipes string) (*harness.Process, error) {
		command := exec.Command(stranger, "-hostile", name, "-pipes", pipes) //nolint:gosec // this program
		command.Stderr = os.Stderr
		process, err := harness.Start(name, command)
		if err != nil {
			return nil, err
		}
		p = append(p, process)
		return process, nil
	}
	pipes := r.sockets
	if name == sunk {
		if _, err := begin(toSink, pipes); err != nil {
			return p, err
		}
		pipes += sinkSuffix
		if err := awaitSockets(r.sockets, pipes); err != nil {
			return p, err
		}
	}
	for range hostiles {
		process, err := begin(name, pipes)
		if err != nil {
			return p, err
		}
		const lowest = 19
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, process.PID(), lowest); err != nil {
			return p, fmt.Errorf("set the priority of a hostile process: %w", err)
		}
	}
	return p, nil
}

// toSink is the name by which this program is told to be the sink.
const toSink = "sink"

// awaitSockets waits until the sink has as many sockets as there are pipes.
func awaitSockets(pipes, sink string) error {
	for began := time.Now(); len(target{sink}.names()) < len(target{pipes}.names()); time.Sleep(pause) {
		if time.Since(began) > callTimeout {
			return errors.New("the sink makes no sockets")
		}
	}
	return nil
}

// end kills the processes that have not ended by themselves.
func (p pod) end() {
	for _, process := range p {
		process.Kill()
	}
}

func copyProgram(from, to string) (err error) {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	in, err := os.Open(filepath.Clean(from))
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()                                                     // read only
	out, err := os.OpenFile(filepath.Clean(to), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700) //nolint:gosec // it is to run
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// be does an attack until ctx ends.
func be(ctx context.Context, name, pipes string) error {
	if name == toSink {
		return sink(ctx, target{pipes})
	}
	for _, a := range attacks {
		if a.name == name {
			a.do(ctx, target{pipes})
			return nil
		}
	}
	return fmt.Errorf("no attack is called %q", name)
}
