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

func TestInstallMakesAServiceAndLeavesAnIdenticalOneAlone(t *testing.T) {
	s := newSite(t)
	if changed, err := s.apply(); err != nil || !changed {
		t.Fatalf("changed %t, %v", changed, err)
	}
	s.has("one", "good 1")
	s.runs(true)
	command := winsvc.SplitCommandLine(s.services.is["csiproxy"].Command)
	if diff := cmp.Diff(append([]string{filepath.Join(s.want.Programs, exeName)}, s.want.Args...), command); diff != "" {
		t.Errorf("the service's program and arguments:\n%s", diff)
	}
	if changed, err := s.apply(); err != nil || changed || len(s.services.log) != 0 {
		t.Errorf("again: changed %t, %v, %q", changed, err, s.services.log)
	}
	if diff := cmp.Diff([]string{s.want.Data, s.want.Data}, s.private); diff != "" {
		t.Errorf("directories made private:\n%s", diff)
	}
}

func TestInstallChangesWhatDiffersAndNoMore(t *testing.T) {
	for name, tt := range map[string]struct {
		change      func(*site)
		log         []string
		exe, config string
	}{
		"another program":                              {func(s *site) { s.write(s.want.Source, "two") }, []string{"stop", "put", "start"}, "two", "good 1"},
		"another configuration":                        {func(s *site) { s.write(s.want.ConfigFrom, "good 2") }, []string{"reload"}, "one", "good 2"},
		"a configuration that takes effect at a start": {func(s *site) { s.write(s.want.ConfigFrom, "good 2 start") }, []string{"stop", "put", "start"}, "one", "good 2 start"},
		"both": {func(s *site) { s.write(s.want.Source, "two"); s.write(s.want.ConfigFrom, "good 2") },
			[]string{"stop", "put", "start"}, "two", "good 2"},
		"other arguments":       {func(s *site) { s.want.Args = []string{"-v=1"} }, []string{"stop", "put", "start"}, "one", "good 1"},
		"a service that stands": {func(s *site) { _ = s.services.Stop(t.Context(), "csiproxy") }, []string{"start"}, "one", "good 1"},
		"a service that somebody set to manual": {func(s *site) {
			is := s.services.is["csiproxy"]
			is.StartType = "manual"
			s.services.is["csiproxy"] = is
		}, []string{"stop", "put", "start"}, "one", "good 1"},
		"another account": {func(s *site) {
			is := s.services.is["csiproxy"]
			is.Account = `.\someone`
			s.services.is["csiproxy"] = is
		}, []string{"stop", "put", "start"}, "one", "good 1"},
		"no configuration is named": {func(s *site) { s.want.ConfigFrom = "" }, nil, "one", "good 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			if _, err := s.apply(); err != nil {
				t.Fatal(err)
			}
			tt.change(s)
			changed, err := s.apply()
			if err != nil || changed != (tt.log != nil) {
				t.Errorf("changed %t, %v", changed, err)
			}
			var log []string
			for _, line := range s.services.log {
				log = append(log, strings.Fields(line)[0])
			}
			if diff := cmp.Diff(tt.log, log); diff != "" {
				t.Error(diff)
			}
			s.has(tt.exe, tt.config)
			s.runs(true)
		})
	}
}

func TestARefusedConfigurationChangesNothing(t *testing.T) {
	s := newSite(t)
	s.write(s.want.ConfigFrom, "bad")
	if _, err := s.apply(); err == nil || !strings.Contains(err.Error(), "proxy.yaml:1:1: bad") {
		t.Fatalf("got %v", err)
	}
	if len(s.services.log) != 0 {
		t.Errorf("a service was touched: %q", s.services.log)
	}
	if _, err := os.Stat(s.want.Programs); err == nil {
		t.Error("programs were installed")
	}
	s.write(s.want.ConfigFrom, "good 1")
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	s.write(s.want.Source, "two")
	for name, spoil := range map[string]func(){
		"the new one is bad":                          func() { s.write(s.want.ConfigFrom, "bad") },
		"the new one is gone":                         func() { _ = os.Remove(s.want.ConfigFrom) },
		"the old one is bad, and no new one is given": func() { s.want.ConfigFrom = ""; s.write(s.want.Config, "bad") },
	} {
		spoil()
		if changed, err := s.apply(); err == nil || changed || len(s.services.log) != 0 {
			t.Errorf("%s: changed %t, %v, %q", name, changed, err, s.services.log)
		}
		s.runs(true)
		s.want.ConfigFrom = filepath.Join(filepath.Dir(s.want.Source), ConfigName)
		s.write(s.want.Config, "good 1")
	}
	s.has("one", "good 1")
}

func TestAConfigurationOfSomebodyElseIsRefusedOrReplaced(t *testing.T) {
	s := newSite(t)
	s.write(s.want.Config, "good 1")
	s.theirs = true
	from := s.want.ConfigFrom
	s.want.ConfigFrom = ""
	if _, err := s.apply(); err == nil || !strings.Contains(err.Error(), "belongs to somebody else") || len(s.services.is) != 0 {
		t.Errorf("got %v, services %+v", err, s.services.is)
	}
	s.want.ConfigFrom = from
	if err := os.Chmod(s.want.Config, 0o400); err != nil { // to be told from the file that replaces it
		t.Fatal(err)
	}
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.want.Config); err != nil || info.Mode().Perm()&0o200 == 0 {
		t.Errorf("the file of somebody else is still there: %v, %v", info.Mode(), err)
	}
}

func TestAProgramThatDoesNotStartIsUndone(t *testing.T) {
	s := newSite(t)
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	before := s.services.is["csiproxy"]
	s.write(s.want.Source, "broken")
	s.write(s.want.ConfigFrom, "good 2")
	s.want.Args = []string{"-v=9"}
	if _, err := s.apply(); err == nil || strings.Contains(err.Error(), "could not all be put back") {
		t.Fatalf("got %v", err)
	}
	s.has("one", "good 1")
	if diff := cmp.Diff(before, s.services.is["csiproxy"]); diff != "" {
		t.Error(diff)
	}
}

func TestAFirstInstallationThatDoesNotStartLeavesNoService(t *testing.T) {
	s := newSite(t)
	s.write(s.want.Source, "broken")
	if _, err := s.apply(); err == nil {
		t.Fatal("no error")
	}
	if len(s.services.is) != 0 {
		t.Errorf("services left: %+v", s.services.is)
	}
	s.has("", "")
}

func TestTheServiceOfCSIProxyIsTakenOverAndGivenBack(t *testing.T) {
	s := newSite(t)
	theirs := filepath.Join(t.TempDir(), "csi-proxy.exe")
	s.write(theirs, "theirs")
	before := winsvc.Status{Installed: true, State: winsvc.Running, StartType: "automatic", Account: "LocalSystem", Command: winsvc.CommandLine(theirs, "-windows-service"),
		Limits: &winsvc.Limits{SID: winsvc.RestrictedSID, Privileges: []string{"SeBackupPrivilege"}}}
	s.services.is["csiproxy"] = before
	s.write(s.want.Source, "broken")
	if _, err := s.apply(); err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(before, s.services.is["csiproxy"]); diff != "" {
		t.Error(diff)
	}
	s.write(s.want.Source, "one")
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	s.has("one", "good 1")
	if text, err := os.ReadFile(theirs); err != nil || string(text) != "theirs" {
		t.Errorf("their program holds %q, %v", text, err)
	}
}

func TestAServiceThatDoesNotStopIsNotReplaced(t *testing.T) {
	s := newSite(t)
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	s.write(s.want.Source, "two")
	s.services.stopErr = errors.New("it does not stop")
	if _, err := s.apply(); err == nil || !strings.Contains(err.Error(), "it does not stop") {
		t.Errorf("got %v", err)
	}
	s.has("one", "good 1")
}

func TestNewRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*Want){
		"no name":                  func(w *Want) { w.Name = "" },
		"a name with a slash":      func(w *Want) { w.Name = `a\b` },
		"a long name":              func(w *Want) { w.Name = strings.Repeat("x", 257) },
		"no program":               func(w *Want) { w.Source = "" },
		"a relative directory":     func(w *Want) { w.Programs = "bin" },
		"a relative data":          func(w *Want) { w.Data = "data" },
		"no name of configuration": func(w *Want) { w.Config = "" },
	} {
		w := newSite(t).want
		spoil(&w)
		if _, err := New(w, Parts{}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
