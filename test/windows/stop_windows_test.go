package windows

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// serviceName is the one under which CSI Proxy is installed.
const serviceName = "csiproxy"

// install makes the service as the documented install line does and starts it.
func install(t *testing.T, _ *proxy, arguments ...string) *mgr.Service {
	t.Helper()
	return installAs(t, serviceName, environment(t, "PIPEGUARD_PROXY"), arguments...)
}

// installAs makes and starts a service of any name.
func installAs(t *testing.T, name, exe string, arguments ...string) *mgr.Service {
	t.Helper()
	manager, err := mgr.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Disconnect() })
	service, err := manager.CreateService(name, exe,
		mgr.Config{StartType: mgr.StartManual}, append(arguments, "-windows-service")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = service.Control(svc.Stop) // it may have stopped
		await(t, service, svc.Stopped)
		if err := errors.Join(service.Delete(), service.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	return service
}

func await(t *testing.T, service *mgr.Service, state svc.State) svc.Status {
	t.Helper()
	for deadline := time.Now().Add(callTimeout); ; time.Sleep(10 * time.Millisecond) { // no event comes from the manager
		status, err := service.Query()
		if err != nil {
			t.Fatal(err)
		}
		if status.State == state {
			return status
		}
		if time.Now().After(deadline) {
			t.Fatalf("the service is in state %d, not %d", status.State, state)
		}
	}
}

func TestAStopOfTheServiceFinishesTheCallInFlight(t *testing.T) {
	p := prepare(t)
	service := install(t, p, p.arguments()...)
	running := await(t, service, svc.Running)
	p.awaitPipes(nil)
	process, err := windows.OpenProcess(windows.SYNCHRONIZE|windows.PROCESS_QUERY_LIMITED_INFORMATION, false, running.ProcessId)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = windows.CloseHandle(process) })

	const files = 3000
	p.fill("full", files)
	d, ctx := dial(t, "v2alpha1"), bounded(t)
	done := make(chan error, 1)
	go func() { done <- d.empty(ctx, p.path("full")) }()
	p.untilItShrinks(ctx, "full", files)
	if _, err := service.Control(svc.Stop); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	if entries, err := os.ReadDir(p.path("full")); err != nil || len(entries) != 0 {
		t.Errorf("%d files are left, %v", len(entries), err)
	}
	stopped := await(t, service, svc.Stopped)
	if stopped.Win32ExitCode != 0 || stopped.ServiceSpecificExitCode != 0 {
		t.Errorf("the service ended with %d, %d", stopped.Win32ExitCode, stopped.ServiceSpecificExitCode)
	}
	if event, err := windows.WaitForSingleObject(process, uint32(callTimeout.Milliseconds())); err != nil || event != windows.WAIT_OBJECT_0 {
		t.Fatalf("the process goes on: %#x, %v", event, err)
	}
	var code uint32
	if err := windows.GetExitCodeProcess(process, &code); err != nil || code != 0 {
		t.Errorf("the process ended with %d, %v", code, err)
	}
	if _, end := p.terminal("/v2alpha1.Filesystem/RmdirContents", p.path("full")); end.Outcome.Result != audit.ResultOK {
		t.Errorf("recorded as %+v", end.Outcome)
	}
	p.reconciles()
	events := p.events()
	if last := events[len(events)-1]; last.Stage != audit.StageLogClose {
		t.Errorf("the last record is %s", last.Stage)
	}
	if err := d.mkdir(bounded(t), p.path("late")); err == nil || p.has("late") {
		t.Errorf("a stopped proxy answers: %v", err)
	}
}

func TestAServiceWithoutAConfigurationDeniesEverybody(t *testing.T) {
	p := prepare(t)
	if err := os.Remove(p.config); err != nil {
		t.Fatal(err)
	}
	service := install(t, p, p.arguments()...)
	await(t, service, svc.Running)
	p.awaitPipes(nil)
	for _, version := range versions {
		if err := dial(t, version).mkdir(bounded(t), p.path("x")); err == nil || !strings.Contains(err.Error(), "PermissionDenied") {
			t.Errorf("%s: %v", version, err)
		}
	}
	if p.has("x") {
		t.Error("it was done")
	}
}

func TestABrokenConfigurationStopsTheStart(t *testing.T) {
	for name, text := range map[string]string{
		"an unknown key":       "apiVersion: pipeguard.dev/v1alpha1\nkind: ProxyConfig\nacls: {}\n",
		"no configuration":     "hello",
		"half of a file":       rules[:len(rules)/2],
		"an unknown operation": strings.Replace(rules, "IsSymlink", "IsSimlink", 1),
	} {
		t.Run(name, func(t *testing.T) {
			p := prepare(t)
			if err := os.WriteFile(p.config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			output, code := run(t, environment(t, "PIPEGUARD_PROXY"), p.arguments()...)
			if code != 1 {
				t.Errorf("exit code %d: %s", code, output)
			}
			if log, err := os.ReadFile(p.log); err != nil || !strings.Contains(string(log), "proxy.yaml") {
				t.Errorf("the log does not name the file: %v\n%s", err, log)
			}
		})
	}
}
