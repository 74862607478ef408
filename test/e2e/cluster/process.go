//go:build e2e

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is a program of the cluster with its log.
type process struct {
	name   string
	log    string
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended
	err    error         // how it ended; to be read after exited is closed
}

// start starts a program of Tools. What it writes is added to its log.
func (c *Cluster) start(program string, args ...string) (*process, error) {
	return c.startAs(program, filepath.Join(Tools(), program), args...)
}

// startAs starts any program, under a name for its log.
func (c *Cluster) startAs(name, exe string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(c.logs, name+".log"), exited: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(exe, args...) // #nosec G204 -- the programs of the cluster, and ours
	p.cmd.Dir = c.logs                 // a host path that Linux takes for a relative one is made there
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(os.Environ(), "PATH="+Tools()+":"+os.Getenv("PATH"))
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for the tests alone
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := Await(ctx, limit, ask)
	select {
	case <-p.exited:
		return fmt.Errorf("%s ended before it was ready: %w; last answer: %w", p.name, p.err, err)
	default:
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// stop asks the program to end, and kills it if it does not within the limit.
func (p *process) stop(limit time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.exited:
	case <-time.After(limit):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// tail returns the last lines of the log.
func (p *process) tail(lines int) []byte {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	all := bytes.SplitAfter(content, []byte("\n"))
	return bytes.Join(all[max(0, len(all)-1-lines):], nil)
}

// Await asks again and again until ask returns nil or the time is over.
func Await(ctx context.Context, limit time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %s", limit))
	defer cancel()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	var last error
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // what is said when the time is over is about the time
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), last)
		case <-again.C:
		}
	}
}
