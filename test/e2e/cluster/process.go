//go:build e2e

package cluster

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/pipeguard/pipeguard/test/harness"
)

// process is a program of the cluster with its log.
type process struct {
	*harness.Process
	log string
}

// start starts a program of Tools. What it writes is added to its log.
func (c *Cluster) start(program string, args ...string) (*process, error) {
	return c.startAs(program, filepath.Join(harness.Tools(), program), args...)
}

// startAs starts any program, under a name for its log.
func (c *Cluster) startAs(name, exe string, args ...string) (*process, error) {
	file := filepath.Join(c.logs, name+".log")
	log, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(exe, args...) // #nosec G204 -- the programs of the cluster, and ours
	cmd.Dir = c.logs                  // a host path that Linux takes for a relative one is made there
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "PATH="+harness.Tools()+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for the tests alone
	p, err := harness.Start(name, cmd)
	return &process{p, file}, err
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
