package install

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// beside adds a service that runs a program of a name, which says what it is.
func (s *site) beside(service, program string) winsvc.Status {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), program)
	s.write(file, "theirs")
	is := winsvc.Status{Installed: true, State: winsvc.Running, StartType: winsvc.Automatic, Account: "LocalSystem", Command: winsvc.CommandLine(file, "-windows-service")}
	s.services.is[service] = is
	return is
}

// isOff checks that a service stands and cannot start by itself.
func (s *site) isOff(service string, want bool) {
	s.t.Helper()
	is, _ := s.services.Status(service)
	if off := is.State == winsvc.Stopped && is.StartType == winsvc.Disabled; off != want {
		s.t.Errorf("%s is %+v", service, is)
	}
}

func TestAServiceThatIsNamedIsStoppedAndComesBackWithUninstall(t *testing.T) {
	s := newSite(t)
	before, wrapped := s.beside("csi-proxy", "csi-proxy.exe"), s.beside("csi-proxy-server", "nssm.exe")
	other := s.beside("csi-proxy-other", "csi-proxy.exe")
	s.want.Replace = []string{"csi-proxy", "CSI-PROXY-SERVER", "csi-proxy-that-is-not-there"}
	s.services.is["CSI-PROXY-SERVER"] = wrapped // the service manager knows names in any case; the fake does not
	delete(s.services.is, "csi-proxy-server")
	if changed, err := s.apply(); err != nil || !changed {
		t.Fatalf("changed %t, %v", changed, err)
	}
	s.runs(true)
	s.isOff("csi-proxy", true)
	s.isOff("CSI-PROXY-SERVER", true)
	if diff := cmp.Diff(other, s.services.is["csi-proxy-other"]); diff != "" {
		t.Errorf("a service that was not named:\n%s", diff)
	}
	if changed, err := s.apply(); err != nil || changed || len(s.services.log) != 0 {
		t.Errorf("again: changed %t, %v, %q", changed, err, s.services.log)
	}
	if names, err := Replaced(s.want.Data); err != nil || strings.Join(names, " ") != "csi-proxy CSI-PROXY-SERVER" {
		t.Errorf("replaced are %q, %v", names, err)
	}
	if err := s.remove(true); err != nil {
		t.Fatal(err)
	}
	for service, want := range map[string]winsvc.Status{"csi-proxy": before, "CSI-PROXY-SERVER": wrapped} {
		if diff := cmp.Diff(want, s.services.is[service]); diff != "" {
			t.Errorf("%s after uninstall:\n%s", service, diff)
		}
	}
	if _, err := os.Stat(filepath.Join(s.want.Data, ReplacedName)); err == nil {
		t.Errorf("%s is left", ReplacedName)
	}
}

func TestWhatStoodBeforeItWasReplacedStandsAfterwards(t *testing.T) {
	s := newSite(t)
	before := s.beside("csi-proxy", "csi-proxy.exe")
	before.State, before.StartType = winsvc.Stopped, winsvc.Manual
	s.services.is["csi-proxy"] = before
	off := s.beside("old", "csi-proxy.exe")
	off.State, off.StartType = winsvc.Stopped, winsvc.Disabled
	s.services.is["old"] = off
	s.want.Replace = []string{"csi-proxy", "old"}
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	s.isOff("csi-proxy", true)
	if err := s.remove(false); err != nil {
		t.Fatal(err)
	}
	for service, want := range map[string]winsvc.Status{"csi-proxy": before, "old": off} {
		if diff := cmp.Diff(want, s.services.is[service]); diff != "" {
			t.Errorf("%s:\n%s", service, diff)
		}
	}
}

func TestAServiceThatSomebodyPutsBackIsStoppedAgainAndTold(t *testing.T) {
	s := newSite(t)
	before := s.beside("csi-proxy", "csi-proxy.exe")
	s.want.Replace = []string{"csi-proxy"}
	installer := s.installer()
	if _, err := installer.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := installer.Contested(); err != nil {
		t.Errorf("the first time: %v", err)
	}
	pid := s.services.restarts
	for range 2 {
		s.services.is["csi-proxy"] = before
		if changed, err := installer.Apply(t.Context()); err != nil || !changed {
			t.Fatalf("changed %t, %v", changed, err)
		}
		s.isOff("csi-proxy", true)
	}
	if s.services.restarts != pid {
		t.Error("our own service was restarted for it")
	}
	if err := installer.Contested(); err == nil || !strings.Contains(err.Error(), "csi-proxy came back 2 times") {
		t.Errorf("contested: %v", err)
	}
	if said := strings.Join(s.said, "\n"); strings.Count(said, "service csi-proxy is back") != 2 {
		t.Errorf("said:\n%s", said)
	}
	if err := s.remove(false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, s.services.is["csi-proxy"]); diff != "" {
		t.Errorf("after uninstall:\n%s", diff)
	}
}

func TestWhenTheServiceDoesNotStartTheOtherOneRunsAgain(t *testing.T) {
	s := newSite(t)
	before := s.beside("csi-proxy", "csi-proxy.exe")
	s.want.Replace = []string{"csi-proxy"}
	s.write(s.want.Source, "broken")
	if _, err := s.apply(); err == nil || strings.Contains(err.Error(), "could not all be put back") {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff(map[string]winsvc.Status{"csi-proxy": before}, s.services.is); diff != "" {
		t.Error(diff)
	}
	if names, err := Replaced(s.want.Data); err != nil || len(names) > 0 {
		t.Errorf("replaced are %q, %v", names, err)
	}
}

func TestAServiceThatDoesNotStopKeepsOursFromStarting(t *testing.T) {
	s := newSite(t)
	s.beside("csi-proxy", "csi-proxy.exe")
	s.want.Replace = []string{"csi-proxy"}
	s.services.stopErr = errors.New("it does not stop")
	if _, err := s.apply(); err == nil || !strings.Contains(err.Error(), "it does not stop") {
		t.Errorf("got %v", err)
	}
	s.runs(false)
}

func TestWhatIsNotCSIProxysIsReplacedOnlyByName(t *testing.T) {
	s := newSite(t)
	theirs := s.beside("csiproxy", "nssm.exe")
	if _, err := s.apply(); err == nil || !strings.Contains(err.Error(), "--replace csiproxy") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(theirs, s.services.is["csiproxy"]); diff != "" || len(s.services.log) > 0 {
		t.Errorf("%q, %s", s.services.log, diff)
	}
	s.want.Replace = []string{"CSIProxy"}
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	s.runs(true)
	if names, err := Replaced(s.want.Data); err != nil || len(names) > 0 {
		t.Errorf("our own service is among those to put back: %q, %v", names, err)
	}
}

func TestServicesOfTheSystemAreNeverReplaced(t *testing.T) {
	for name, command := range map[string]string{
		"Spooler":    `C:\WINDOWS\System32\spoolsv.exe`,
		"Dnscache":   `C:\Windows\system32\svchost.exe -k NetworkService -p`,
		"LanmanS":    `%SystemRoot%\system32\svchost.exe -k smbsvcs`,
		"quoted":     `"C:/Windows/System32/svchost.exe" -k x`,
		"driver":     `\SystemRoot\System32\drivers\x.sys`,
		"relative":   `system32\drivers\x.exe`,
		"device":     `\\?\C:\Windows\x.exe`,
		"native":     `\??\C:\Windows\x.exe`,
		"around":     `C:\k\..\Windows\x.exe`,
		"nothing":    ``,
		"kubelet":    `C:\k\nssm.exe`,
		"KubeProxy":  `C:\k\nssm.exe`,
		"node":       `C:\k\kubelet.exe --windows-service`,
		"containers": `"C:\Program Files\containerd\containerd.exe" --run-service`,
	} {
		for _, own := range []bool{true, false} {
			s := newSite(t)
			before := winsvc.Status{Installed: true, State: winsvc.Running, StartType: winsvc.Automatic, Command: command}
			s.services.is[name], s.want.Replace = before, []string{name}
			if own {
				s.want.Name = name
			}
			if _, err := s.apply(); err == nil || !strings.Contains(err.Error(), "is not replaced; nothing was changed") {
				t.Errorf("%s: %v", name, err)
			}
			if diff := cmp.Diff(map[string]winsvc.Status{name: before}, s.services.is); diff != "" || len(s.services.log) > 0 {
				t.Errorf("%s: %q, %s", name, s.services.log, diff)
			}
		}
	}
}

// The kubelet's service of some platforms depends on that of csi-proxy.exe.
func TestAServiceThatOthersDependOnIsNotDisabled(t *testing.T) {
	s := newSite(t)
	before := s.beside("csi-proxy", "csi-proxy.exe")
	s.services.depend = map[string][]string{"csi-proxy": {"Kubelet", "Kubeproxy"}}
	s.want.Replace = []string{"csi-proxy"}
	if _, err := s.apply(); err == nil || !strings.Contains(err.Error(), "Kubelet, Kubeproxy; nothing was changed") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(map[string]winsvc.Status{"csi-proxy": before}, s.services.is); diff != "" || len(s.services.log) > 0 {
		t.Errorf("%q, %s", s.services.log, diff)
	}
}

func TestTheProgramOfACommand(t *testing.T) {
	for command, want := range map[string]string{
		`"C:\Program Files\csi-proxy\csi-proxy.exe" -v=1`: `C:\Program Files\csi-proxy\csi-proxy.exe`,
		`C:\Program Files\csi-proxy\csi-proxy.exe -v=1`:   `C:\Program Files\csi-proxy\csi-proxy.exe`,
		` C:\etc\kubernetes\node\bin\CSI-PROXY.EXE`:       `C:\etc\kubernetes\node\bin\CSI-PROXY.EXE`,
		`C:\a.exe.d\csi-proxy.exe	-x a.exe`:               `C:\a.exe.d\csi-proxy.exe`,
		`C:\x\driver.sys -a`:                              `C:\x\driver.sys`,
		`"C:\never ends`:                                  `C:\never ends`,
		``:                                                ``,
	} {
		if got := programOf(command); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}

func FuzzProgramOf(f *testing.F) {
	f.Add(`"C:\Program Files\a.exe" -x`)
	f.Add(`C:\a b.exe c.exe`)
	f.Fuzz(func(t *testing.T, command string) {
		program := programOf(command)
		if !strings.Contains(command, program) {
			t.Errorf("%q is not in %q", program, command)
		}
		if err := refuseSystem("x", program); err == nil && !strings.HasSuffix(strings.ToLower(program), ".exe") {
			t.Errorf("%q is taken for a program", program)
		}
	})
}

func TestARecordOfWhatWasReplacedThatCannotBeReadStopsNothingElse(t *testing.T) {
	s := newSite(t)
	before := s.beside("csi-proxy", "csi-proxy.exe")
	s.write(filepath.Join(s.want.Data, ReplacedName), "{")
	s.want.Replace = []string{"csi-proxy"}
	if _, err := s.apply(); err == nil || !strings.Contains(err.Error(), ReplacedName) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(before, s.services.is["csi-proxy"]); diff != "" {
		t.Errorf("it was stopped although how it was is not known:\n%s", diff)
	}
	if err := s.remove(false); err == nil || !strings.Contains(err.Error(), ReplacedName) {
		t.Errorf("uninstall: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.want.Data, ReplacedName)); err != nil {
		t.Errorf("the record: %v", err)
	}
}
