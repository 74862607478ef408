package windows

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"
)

func TestInstallUpgradeAndUninstall(t *testing.T) {
	s := newSite(t)
	s.status(4)
	s.install(0)
	first := s.status(0)
	if first.State != "RUNNING" || first.StartType != "automatic" || first.Program != filepath.Join(s.to, "proxy.exe") || !strings.HasPrefix(first.Version, "proxy v") {
		t.Errorf("status %+v", first)
	}
	for _, want := range []string{`"` + first.Program + `" -windows-service -config ` + installed, s.kubelet} {
		if !strings.Contains(first.Command, want) {
			t.Errorf("%s is not in %s", want, first.Command)
		}
	}
	if first.Restarts == nil {
		t.Log("the recovery settings cannot be read back here")
	} else if !slices.Equal(first.Restarts, []string{"10s", "10s", "10s"}) {
		t.Errorf("restarts after %q", first.Restarts)
	}
	if key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SYSTEM\CurrentControlSet\Services\EventLog\Application\Pipeguard`, registry.QUERY_VALUE); err != nil {
		t.Errorf("event source: %v", err)
	} else {
		_ = key.Close()
	}
	if first.Process == nil || !slices.Contains(first.Process.Privileges, "SeChangeNotifyPrivilege") || len(first.Process.Protections) != 2 {
		t.Errorf("the running process says of itself %+v", first.Process)
	}
	if text := s.read(s.log); !strings.Contains(text, "privileges of this process") || strings.Count(text, `"protection is `) != 2 {
		t.Errorf("the service does not log what it may do:\n%s", text)
	}
	s.works("first")

	if output := s.install(0); !strings.Contains(output, "is as it should be") || s.status(0).PID != first.PID {
		t.Errorf("an identical installation is not left alone: %s", output)
	}
	s.exe = s.newer()
	s.install(0)
	second := s.status(0)
	if second.PID == first.PID || s.read(second.Program) != s.read(s.exe) {
		t.Errorf("not upgraded: %+v", second)
	}
	s.works("second")

	if output, code := s.command("uninstall"); code != 0 {
		t.Errorf("uninstall: exit code %d: %s", code, output)
	}
	s.status(4)
	if _, err := os.Stat(installed); err != nil {
		t.Errorf("the configuration: %v", err)
	}
	s.install(0)
	s.works("third")
	if output, code := s.command("uninstall", "--purge"); code != 0 {
		t.Errorf("uninstall --purge: exit code %d: %s", code, output)
	}
	for _, file := range []string{installed, second.Program} {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s is left", file)
		}
	}
	s.reconciles()
}

func TestWhatDoesNotWorkIsNotInstalled(t *testing.T) {
	s := newSite(t)
	s.install(0)
	before, config := s.status(0), s.read(installed)
	same := func(name string) {
		t.Helper()
		if now := s.status(0); now.PID != before.PID || s.read(installed) != config {
			t.Errorf("%s: %+v", name, now)
		}
	}
	s.rewrite("acl:", "alc:")
	if output := s.install(1); !strings.Contains(output, "alc") {
		t.Errorf("the fault is not named: %s", output)
	}
	same("a bad configuration")
	s.rewrite("alc:", "acl:")
	if output := s.install(2, "--allow-all"); !strings.Contains(output, "allow-all") {
		t.Errorf("the flag is not named: %s", output)
	}
	same("a flag that there is not")

	if output := s.install(2, "-working-dir", "relative"); !strings.Contains(output, "relative") {
		t.Errorf("the directory is not named: %s", output)
	}
	same("a directory that is none")
	if output := s.install(1, "-metrics-bind-address", "192.0.2.1:9100"); !strings.Contains(output, "service-specific") || !strings.Contains(output, "runs as before") { // not an address of this machine
		t.Errorf("a service that does not start: %s", output)
	}
	after := s.status(0)
	if after.Command != before.Command {
		t.Errorf("the command is not put back: %+v", after)
	}
	s.works("x")
}

func TestTheConfigurationIsReloadedWithoutARestart(t *testing.T) {
	s := newSite(t)
	s.install(0)
	before := s.status(0)
	refused := func() bool {
		err := dial(t, "v1").rmdir(bounded(t), s.path("x"))
		return err != nil && strings.Contains(err.Error(), "PermissionDenied")
	}
	until := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(callTimeout); !is(); time.Sleep(50 * time.Millisecond) { // another process is waited for
			if time.Now().After(deadline) {
				t.Fatalf("%s: not within %v", what, callTimeout)
			}
		}
	}
	s.mkdir("x")
	if !refused() {
		t.Fatal("Rmdir is allowed before a rule says so")
	}
	s.rewrite("[PathExists, IsSymlink, Mkdir]", "[PathExists, IsSymlink, Mkdir, Rmdir]")
	if output := s.install(0); !strings.Contains(output, "replaced") {
		t.Errorf("install said %s", output)
	}
	until("the new rule", func() bool { return !refused() })

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
	reloads := func() int { return strings.Count(s.read(s.log), "access list reloaded") }
	n := reloads()
	if _, err := service.Control(svc.ParamChange); err != nil {
		t.Fatal(err)
	}
	until("a reload by ParamChange", func() bool { return reloads() > n })

	if err := os.WriteFile(installed, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	until("a refusal", func() bool { return strings.Contains(s.read(s.log), "CONFIGURATION REFUSED") })
	if refused() {
		t.Error("the last good rules do not hold after a bad file")
	}
	if now := s.status(0); now.PID != before.PID {
		t.Errorf("it was restarted: %+v", now)
	}
}

func TestTheServiceDefinitionOfCSIProxyWorksAsItIs(t *testing.T) {
	p := prepare(t)
	text, err := os.ReadFile(p.config)
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(installed), 0o755), os.WriteFile(installed, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(installed) })
	service := install(t, p, "-log_file="+p.log, "-logtostderr=false", "-kubelet-path="+p.kubelet)
	await(t, service, svc.Running)
	for _, version := range versions { // a service that runs has all its pipes open
		if err := dial(t, version).mkdir(bounded(t), p.path(version)); err != nil || !p.has(version) {
			t.Errorf("mkdir by %s: %v", version, err)
		}
	}
}

func TestSelftestAnswersUnderTheseConditions(t *testing.T) {
	s := newSite(t)
	output, code := s.command("selftest", "-kubelet-path", s.kubelet)
	for _, want := range []string{"GROUP", "PathExists", "GetService", "ListTargetPortals", "ListDiskIDs"} {
		if !strings.Contains(output, want) {
			t.Errorf("%s is not in the table", want)
		}
	}
	// Wine has no firmware with a serial number and no disks to name, so that 1 is expected here, and 0 on Windows.
	for line := range strings.Lines(output) {
		if strings.Contains(line, "FAILED") && !strings.Contains(line, "GetBIOSSerialNumber") {
			t.Error(line)
		}
	}
	t.Logf("exit code %d:\n%s", code, output)
}
