package windows

import (
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/pipeguard/pipeguard/test/harness"
)

// following starts install --follow, with more of its flags and of the service's, and returns the address of its health once
// it has installed.
func (s *site) following(install []string, service ...string) string {
	s.t.Helper()
	args := slices.Concat([]string{"install", "--follow", "--health-address", "127.0.0.1:0", "--to", s.to, "--config-from", s.config}, install,
		[]string{"--", "-kubelet-path", s.kubelet, "--audit-log", s.records, "-log_file", s.log, "-logtostderr=false"}, service)
	process, err := harness.Start("install --follow", exec.Command(s.exe, args...)) //nolint:gosec // the program under test
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		process.Kill()
		s.t.Log(process.Stdout.String())
	})
	process.Stdout.Await(s.t, 1, "is as it should be\n")
	_, address, _ := strings.Cut(process.Stdout.String(), "health served on ")
	address, _, _ = strings.Cut(address, "\n")
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
