package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a started program with its log.
type process struct {
	name   string
	cmd    *exec.Cmd
	log    lockedBuffer
	exited chan struct{} // closed when it has ended
	err    error         // how it ended; to be read after exited is closed
}

// lockedBuffer collects what a program writes while others read it.
type lockedBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func start(name, exe string, args ...string) (*process, error) {
	cmd := exec.Command(exe, args...) // #nosec G204 -- a program that was just built
	p := &process{name: name, cmd: cmd, exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// await asks again and again until ask returns nil, the program ends or the time is over.
func (p *process) await(ctx context.Context, limit time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s was not ready within %s", p.name, limit))
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		last := ask(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%s ended before it was ready: %w", p.name, p.ending())
		case <-ctx.Done():
			return fmt.Errorf("%w; last answer: %w", context.Cause(ctx), last)
		case <-again.C:
		}
	}
}

// stop asks the program to end as a service manager would, and reports an end that was not clean.
func (p *process) stop(limit time.Duration) error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s had already ended: %w", p.name, p.ending())
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.exited:
	case <-time.After(limit):
		p.kill()
		return fmt.Errorf("%s did not end within %s of SIGTERM and was killed", p.name, limit)
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w", p.name, p.err)
	}
	return nil
}

func (p *process) ending() error {
	if p.err == nil {
		return errors.New("exit code 0")
	}
	return p.err
}

// kill ends the program if it still runs; it is what is left when the run fails half way.
func (p *process) kill() {
	select {
	case <-p.exited:
	default:
		if err := p.cmd.Process.Kill(); err == nil {
			<-p.exited
		}
	}
}

// output runs a program to its end and returns what it wrote to each stream and its exit code.
func output(ctx context.Context, exe string, args ...string) (stdout, stderr string, code int, err error) {
	var out, errOut strings.Builder
	cmd := exec.CommandContext(ctx, exe, args...) // #nosec G204 -- a program that was just built
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out.String(), errOut.String(), exit.ExitCode(), nil
	}
	return out.String(), errOut.String(), 0, err
}
