// Package harness starts programs for tests, and waits for what they do.
package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Process is a started program with what it writes.
type Process struct {
	Name   string
	Stdout Output
	Stderr Output

	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended
	err    error         // how it ended; to be read after exited is closed
}

// Start starts a program, and keeps what it writes to streams that cmd does not send elsewhere.
func Start(name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{Name: name, cmd: cmd, exited: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = &p.Stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &p.Stderr
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// Run runs a program to its end and returns what it wrote to each stream and its exit code. An error means that it could
// not be run.
func Run(cmd *exec.Cmd) (stdout, stderr string, code int, err error) {
	var out, fault strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &fault
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), fault.String(), exit.ExitCode(), nil
	}
	return out.String(), fault.String(), 0, err
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends the process a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Exited is closed when the program has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Wait returns when the program has ended, with an error unless its exit code is 0.
func (p *Process) Wait() error {
	<-p.exited
	return p.err
}

// Await asks again and again until ask returns nil, the program ends or the time is over.
func (p *Process) Await(ctx context.Context, limit time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.exited:
			cancel(fmt.Errorf("ended before it was ready: %w", p.ending()))
		case <-ctx.Done():
		}
	}()
	if err := Await(ctx, limit, ask); err != nil {
		return fmt.Errorf("%s: %w\n%s", p.Name, err, p.Stderr.String())
	}
	return nil
}

// Stop asks the program to end as a kubelet or a service manager would, and reports an end that was not clean.
func (p *Process) Stop(limit time.Duration) error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s had already ended: %w\n%s", p.Name, p.ending(), p.Stderr.String())
	default:
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", p.Name, err)
	}
	select {
	case <-p.exited:
	case <-time.After(limit):
		p.Kill()
		return fmt.Errorf("%s did not end within %s of SIGTERM and was killed", p.Name, limit)
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w\n%s", p.Name, p.err, p.Stderr.String())
	}
	return nil
}

func (p *Process) ending() error {
	if p.err == nil {
		return errors.New("exit code 0")
	}
	return p.err
}

// Kill ends the program at once if it still runs.
func (p *Process) Kill() {
	select {
	case <-p.exited:
	default:
		if err := p.cmd.Process.Kill(); err == nil {
			<-p.exited
		}
	}
}
