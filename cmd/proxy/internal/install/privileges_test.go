package install

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/winsvc"
)

func (s *site) limits() winsvc.Limits {
	s.t.Helper()
	now, err := s.services.Status(s.want.Name)
	if err != nil || now.Limits == nil {
		s.t.Fatalf("the service has no limits: %+v, %v", now, err)
	}
	return *now.Limits
}

func TestAnInstalledServiceHasASIDAndKeepsTheListedPrivilegesAlone(t *testing.T) {
	s := newSite(t)
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	want := winsvc.Limits{SID: winsvc.UnrestrictedSID, Privileges: Privileges()}
	if got := s.limits(); !got.Equal(want) || len(got.Privileges) == 0 {
		t.Fatalf("limits %+v, want %+v", got, want)
	}
	s.want.AllPrivileges = true
	if changed, err := s.apply(); err != nil || !changed {
		t.Fatalf("with all privileges: changed %t, %v", changed, err)
	}
	if got := s.limits(); !got.Equal(winsvc.Limits{SID: winsvc.UnrestrictedSID}) {
		t.Errorf("with all privileges: limits %+v", got)
	}
	s.runs(true)
	if changed, err := s.apply(); err != nil || changed {
		t.Errorf("again: changed %t, %v", changed, err)
	}
}

func TestLimitsThatSomebodyChangedAreSetAgain(t *testing.T) {
	for name, changed := range map[string]winsvc.Limits{
		"no SID":             {SID: winsvc.NoSID, Privileges: Privileges()},
		"all privileges":     {SID: winsvc.UnrestrictedSID},
		"one privilege more": {SID: winsvc.UnrestrictedSID, Privileges: append(Privileges(), "SeTcbPrivilege")},
		"one privilege less": {SID: winsvc.UnrestrictedSID, Privileges: Privileges()[1:]},
	} {
		s := newSite(t)
		if _, err := s.apply(); err != nil {
			t.Fatal(err)
		}
		is := s.services.is["csiproxy"]
		is.Limits = &changed
		s.services.is["csiproxy"] = is
		if done, err := s.apply(); err != nil || !done {
			t.Errorf("%s: changed %t, %v", name, done, err)
		}
		if got := s.limits(); !got.Equal(winsvc.Limits{SID: winsvc.UnrestrictedSID, Privileges: Privileges()}) {
			t.Errorf("%s: limits %+v", name, got)
		}
		s.runs(true)
	}
}

func TestAManagerWithoutLimitsIsNotAskedForThemAgainAndAgain(t *testing.T) {
	s := newSite(t)
	s.services.noLimits = true
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	if changed, err := s.apply(); err != nil || changed || len(s.services.log) != 0 {
		t.Errorf("changed %t, %v, %q", changed, err, s.services.log)
	}
}

func TestAnUpgradeThatDoesNotStartGivesTheOldLimitsBack(t *testing.T) {
	s := newSite(t)
	s.want.AllPrivileges = true
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	s.want.AllPrivileges = false
	s.write(s.want.Source, "broken")
	if _, err := s.apply(); err == nil || strings.Contains(err.Error(), "could not all be put back") {
		t.Fatalf("got %v", err)
	}
	if got := s.limits(); !got.Equal(winsvc.Limits{SID: winsvc.UnrestrictedSID}) {
		t.Errorf("limits %+v", got)
	}
	s.runs(true)
}

func TestAnOldServiceRunsAgainEvenIfItsLimitsCannotBePutBack(t *testing.T) {
	s := newSite(t)
	theirs := filepath.Join(t.TempDir(), "csi-proxy.exe")
	s.write(theirs, "theirs")
	s.services.is["csiproxy"] = winsvc.Status{Installed: true, State: winsvc.Running, StartType: "automatic", Account: "LocalSystem",
		Command: winsvc.CommandLine(theirs), Limits: &winsvc.Limits{SID: winsvc.NoSID}}
	s.services.keeps = true
	s.write(s.want.Source, "broken")
	if _, err := s.apply(); err == nil || !strings.Contains(err.Error(), "could not all be put back") || !strings.Contains(err.Error(), "the list of privileges stays") {
		t.Errorf("got %v", err)
	}
	s.runs(true)
	if got := s.services.is["csiproxy"].Command; got != winsvc.CommandLine(theirs) {
		t.Errorf("it runs %s", got)
	}
}

// A privilege that the code enables and that the service gave up would fail on a node alone.
func TestEveryPrivilegeThatTheServiceEnablesIsKept(t *testing.T) {
	named := regexp.MustCompile(`"(Se[A-Z][A-Za-z]+Privilege)"`)
	found := 0
	root := filepath.Join("..", "..", "..", "..", "internal")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range named.FindAllSubmatch(text, -1) {
			found++
			if name := string(match[1]); !slices.Contains(Privileges(), name) {
				t.Errorf("%s names %s, which the service does not keep", path, name)
			}
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%d privileges found, %v", found, err)
	}
}
