package install

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pipeguard/pipeguard/internal/winsvc"
)

func (s *site) remove(purge bool) error {
	return Removal{
		Name: "csiproxy", Data: s.want.Data, Purge: purge, Manager: s.services,
		RemoveEventSource: func() error { return nil }, Say: func(string, ...any) {},
	}.Apply(s.t.Context())
}

func TestUninstallRemovesTheServiceAndWithPurgeItsFiles(t *testing.T) {
	s := withCopies(newSite(t))
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	records := filepath.Join(s.want.Data, "audit")
	s.write(records, "records")
	if err := s.remove(false); err != nil {
		t.Fatal(err)
	}
	s.has("one", "good 1")
	if len(s.services.is) != 0 || !slices.Contains(s.services.log, "stop") {
		t.Errorf("services %+v, done %q", s.services.is, s.services.log)
	}
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	if err := s.remove(true); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{s.want.Programs, s.want.Config, s.want.Needed[0].To, s.want.Delivered[0].To} {
		if _, err := os.Stat(gone); err == nil {
			t.Errorf("%s is left", gone)
		}
	}
	if text, err := os.ReadFile(records); err != nil || string(text) != "records" {
		t.Errorf("records %q, %v", text, err)
	}
	if err := s.remove(true); err != nil {
		t.Errorf("what is not there: %v", err)
	}
}

func TestUninstallLeavesTheProgramsOfOthers(t *testing.T) {
	s := newSite(t)
	theirs := filepath.Join(t.TempDir(), "csi-proxy.exe")
	s.write(theirs, "theirs")
	s.services.is["csiproxy"] = winsvc.Status{Installed: true, State: winsvc.Running, Command: winsvc.CommandLine(theirs)}
	if err := s.remove(true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Error(err)
	}
}
