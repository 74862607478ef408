package windows

import (
	"bufio"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"
)

// following starts install --follow, with more of its flags and of the service's, and returns the address of its health once
// it has installed.
func (s *site) following(install []string, service ...string) string {
	s.t.Helper()
	args := slices.Concat([]string{"install", "--follow", "--health-address", "127.0.0.1:0", "--to", s.to, "--config-from", s.config}, install,
		[]string{"--", "-kubelet-path", s.kubelet, "--audit-log", s.records, "-log_file", s.log, "-logtostderr=false"}, service)
	command := exec.Command(s.exe, args...) //nolint:gosec // the program under test
	output, err := command.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		s.t.Fatal(err)
	}
	var reader sync.WaitGroup
	s.t.Cleanup(func() {
		_ = command.Process.Kill()
		reader.Wait()
		_ = command.Wait()
	})
	address, ready := "", make(chan struct{})
	installedOnce := sync.OnceFunc(func() { close(ready) })
	reader.Go(func() {
		for lines := bufio.NewScanner(output); lines.Scan(); {
			s.t.Log(lines.Text())
			if text, ok := strings.CutPrefix(lines.Text(), "health served on "); ok {
				address = text
			}
			if strings.HasSuffix(lines.Text(), "is as it should be") {
				installedOnce()
			}
		}
	})
	select {
	case <-ready:
	case <-time.After(callTimeout):
		s.t.Fatal("it does not install")
	}
	return address
}

func TestFollowStartsAServiceThatStoodStill(t *testing.T) {
	s := newSite(t)
	address := s.following(nil)
	first := s.status(0)
	response, err := http.Get("http://" + address + "/readyz") //nolint:noctx // bounded by the test
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("readyz: %v, %v", response, err)
	}
	_ = response.Body.Close()
	manager, err := mgr.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = manager.Disconnect() }()
	service, err := manager.OpenService(serviceName)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = service.Close() }()
	if _, err := service.Control(svc.Stop); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(callTimeout); ; time.Sleep(100 * time.Millisecond) { // another process is waited for
		status, err := service.Query()
		if err != nil {
			t.Fatal(err)
		}
		if status.State == svc.Running && int(status.ProcessId) != first.PID {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the service is in state %d", status.State)
		}
	}
	s.works("again")
}
