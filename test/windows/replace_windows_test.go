package windows

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"
)

// otherName is the one under which some platforms install csi-proxy.exe.
const otherName = "csi-proxy"

// platform starts what a platform has installed: a program csi-proxy.exe that serves the pipes as a service of another name.
func (s *site) platform() *mgr.Service {
	s.t.Helper()
	exe := filepath.Join(filepath.Dir(s.config), "k", "csi-proxy.exe")
	text := s.read(s.exe)
	if err := os.MkdirAll(filepath.Dir(exe), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(exe, []byte(text), 0o700); err != nil { //nolint:gosec // it is to run
		s.t.Fatal(err)
	}
	service := installAs(s.t, otherName, exe, "-service-name", otherName, "--config", s.config, "-kubelet-path", s.kubelet, "--audit-log", s.records+"-theirs",
		"-log_file", s.log+"-theirs", "-logtostderr=false")
	await(s.t, service, svc.Running)
	return service
}

// replacing installs with these services replaced.
func (s *site) replacing(want int, names ...string) string {
	s.t.Helper()
	args := []string{"install", "--to", s.to, "--config-from", s.config}
	for _, name := range names {
		args = append(args, "--replace", name)
	}
	output, code := s.command(append(args, "--", "-kubelet-path", s.kubelet, "--audit-log", s.records, "-log_file", s.log, "-logtostderr=false")...)
	if code != want {
		s.t.Fatalf("install: exit code %d, want %d:\n%s", code, want, output)
	}
	return output
}

// replaced is what status says of the one service that was replaced.
func (s *site) replaced() (name string, back bool) {
	s.t.Helper()
	output, _ := s.command("status", "-o", "json")
	var now struct {
		Replaced []struct {
			Service string
			Back    bool
		}
	}
	if err := json.Unmarshal([]byte(output), &now); err != nil || len(now.Replaced) != 1 {
		s.t.Fatalf("status: %v:\n%s", err, output)
	}
	return now.Replaced[0].Service, now.Replaced[0].Back
}

// settingsOf returns the basic settings of a service: those that Wine knows, too.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-queryserviceconfigw
func settingsOf(service *mgr.Service) (startType uint32, command string, err error) {
	buffer := make([]byte, 8<<10) // the most that there is
	var needed uint32
	c := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&buffer[0]))
	if err := windows.QueryServiceConfig(service.Handle, c, uint32(len(buffer)), &needed); err != nil { //nolint:gosec // see above
		return 0, "", err
	}
	return c.StartType, windows.UTF16PtrToString(c.BinaryPathName), nil
}

func startType(t *testing.T, service *mgr.Service) uint32 {
	t.Helper()
	is, _, err := settingsOf(service)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// What comes of two that want the same pipes is not looked at: Wine lets a second process have a pipe's name now and then.
func TestAServiceOfAnotherNameIsReplacedAgainAndPutBack(t *testing.T) {
	s := newSite(t)
	theirs := s.platform()
	s.replacing(0, otherName)
	first := s.status(0)
	await(t, theirs, svc.Stopped)
	if got := startType(t, theirs); got != mgr.StartDisabled {
		t.Errorf("start type %d", got)
	}
	if name, back := s.replaced(); name != otherName || back {
		t.Errorf("replaced is %s, back %t", name, back)
	}
	s.works("first")

	// A platform that keeps its services as they were.
	const same = windows.SERVICE_NO_CHANGE
	if err := windows.ChangeServiceConfig(theirs.Handle, same, mgr.StartAutomatic, same, nil, nil, nil, nil, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, back := s.replaced(); !back {
		t.Error("status does not tell that it is back")
	}
	if output := s.replacing(0, otherName); !strings.Contains(output, "service csi-proxy is back") {
		t.Errorf("install said %s", output)
	}
	if got := startType(t, theirs); got != mgr.StartDisabled || s.status(0).PID != first.PID {
		t.Errorf("start type %d, or our service was restarted", got)
	}

	if output, code := s.command("uninstall", "--purge"); code != 0 {
		t.Fatalf("uninstall: exit code %d: %s", code, output)
	}
	await(t, theirs, svc.Running)
	if got := startType(t, theirs); got != mgr.StartAutomatic {
		t.Errorf("after uninstall: start type %d", got)
	}
	s.works("theirs") // by the program of the platform, which serves the same pipes
}

func TestAServiceOfWindowsIsNeverReplaced(t *testing.T) {
	manager, err := mgr.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = manager.Disconnect() }()
	names, err := manager.ListServices()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(names, func(name string) bool {
		service, err := manager.OpenService(name)
		if err != nil {
			return false
		}
		defer func() { _ = service.Close() }()
		is, command, err := settingsOf(service)
		return err == nil && is != mgr.StartDisabled && strings.Contains(strings.ToLower(command), `c:\windows`)
	})
	if at < 0 {
		t.Fatalf("none of %q is a service of Windows", names)
	}
	s := newSite(t)
	if output := s.replacing(1, names[at]); !strings.Contains(output, "nothing was changed") {
		t.Errorf("install said %s", output)
	}
	s.status(4)
}
