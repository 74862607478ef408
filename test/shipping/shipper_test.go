//go:build unix

package shipping

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// shipper runs rsyslogd with the configuration that is published.
type shipper struct {
	program string
	audit   string
	state   string
	address string

	running *exec.Cmd
	output  bytes.Buffer // once it has ended
}

func newShipper(t *testing.T, audit, address string) *shipper {
	t.Helper()
	program, err := exec.LookPath("rsyslogd")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/rsyslogd")
	}
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatalf("rsyslogd is not here: %v", err)
	case err != nil:
		t.Skip("rsyslogd is not here, so that nothing is shipped; on Debian: apt-get install rsyslog")
	}
	return &shipper{program: program, audit: audit, state: t.TempDir(), address: address}
}

func (s *shipper) start(t *testing.T) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	config, err := filepath.Abs("../../deploy/siem/rsyslog/pipeguard.conf")
	if err != nil {
		t.Fatal(err)
	}
	s.output.Reset()
	s.running = exec.Command(s.program, "-n", "-f", config, "-i", filepath.Join(s.state, "pid"))
	s.running.Env = append(os.Environ(), "PIPEGUARD_AUDIT_DIR="+s.audit, "PIPEGUARD_STATE_DIR="+s.state, "SIEM_HOST="+host, "SIEM_PORT="+port)
	s.running.Stdout, s.running.Stderr = &s.output, &s.output
	if err := s.running.Start(); err != nil {
		t.Fatal(err)
	}
	cmd := s.running
	t.Cleanup(func() {
		if s.running == cmd { // the test has failed
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
}

// end ends it with a signal, and waits. Whatever it has said is logged.
func (s *shipper) end(t *testing.T, with os.Signal) {
	t.Helper()
	began := time.Now()
	if err := s.running.Process.Signal(with); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = s.running.Process.Kill() })
	err := s.running.Wait()
	if !late.Stop() {
		t.Errorf("the shipper did not end")
	}
	s.running = nil
	t.Logf("the shipper ended by %v within %v: %v\n%s", with, time.Since(began).Round(time.Millisecond), err, &s.output)
	if err != nil && with == syscall.SIGTERM {
		t.Error("it did not end well")
	}
}
