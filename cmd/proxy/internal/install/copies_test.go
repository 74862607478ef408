package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// withCopies adds keys and a bundle to a site. A content that begins with "bad" is refused when it is read.
func withCopies(s *site) *site {
	read := func(file string) ([]byte, error) {
		text, err := os.ReadFile(file)
		if err == nil && strings.HasPrefix(string(text), "bad") {
			err = errors.New("no key")
		}
		return text, err
	}
	from := filepath.Dir(s.want.Source)
	s.want.Needed = []Copy{{From: filepath.Join(from, "keys"), To: filepath.Join(s.want.Data, KeysName), Read: read}}
	s.want.Delivered = []Copy{{From: filepath.Join(from, "bundle"), To: filepath.Join(s.want.Data, BundleName), Read: read}}
	s.write(s.want.Needed[0].From, "keys 1")
	s.write(s.want.Delivered[0].From, "bundle 1")
	return s
}

// holds checks the copies.
func (s *site) holds(keys, bundle string) {
	s.t.Helper()
	for name, want := range map[string]string{KeysName: keys, BundleName: bundle} {
		text, err := os.ReadFile(filepath.Join(s.want.Data, name))
		if err != nil && want != "" || string(text) != want {
			s.t.Errorf("%s holds %q, want %q (%v)", name, text, want, err)
		}
	}
}

// did is what the service manager was told.
func (s *site) did() (log []string) {
	for _, line := range s.services.log {
		log = append(log, strings.Fields(line)[0])
	}
	return log
}

func TestKeysAndBundleAreThereBeforeTheServiceStarts(t *testing.T) {
	s := withCopies(newSite(t))
	if changed, err := s.apply(); err != nil || !changed {
		t.Fatalf("changed %t, %v", changed, err)
	}
	s.has("one", "good 1")
	s.holds("keys 1", "bundle 1")
	if changed, err := s.apply(); err != nil || changed || len(s.services.log) != 0 {
		t.Errorf("again: changed %t, %v, %q", changed, err, s.services.log)
	}
}

func TestWhatChangesIsCopiedAndTheServiceIsToldWhatItDoesNotNotice(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(*site)
		log          []string
		keys, bundle string
	}{
		"another bundle":        {func(s *site) { s.write(s.want.Delivered[0].From, "bundle 2") }, nil, "keys 1", "bundle 2"},
		"other keys":            {func(s *site) { s.write(s.want.Needed[0].From, "keys 2") }, []string{"reload"}, "keys 2", "bundle 1"},
		"a bundle that is gone": {func(s *site) { _ = os.Remove(s.want.Delivered[0].From) }, nil, "keys 1", "bundle 1"},
		"a copy that somebody changed": {func(s *site) { s.write(filepath.Join(s.want.Data, KeysName), "his") },
			[]string{"reload"}, "keys 1", "bundle 1"},
		"other keys and another program": {func(s *site) { s.write(s.want.Source, "two"); s.write(s.want.Needed[0].From, "keys 2") },
			[]string{"stop", "put", "start"}, "keys 2", "bundle 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := withCopies(newSite(t))
			if _, err := s.apply(); err != nil {
				t.Fatal(err)
			}
			c.change(s)
			if _, err := s.apply(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.log, s.did()); diff != "" {
				t.Error(diff)
			}
			s.holds(c.keys, c.bundle)
			s.runs(true)
		})
	}
}

func TestKeysThatAreRefusedChangeNothingAndKeepNoBundleBack(t *testing.T) {
	for name, spoil := range map[string]func(s *site){
		"bad":  func(s *site) { s.write(s.want.Needed[0].From, "bad") },
		"gone": func(s *site) { _ = os.Remove(s.want.Needed[0].From) },
	} {
		t.Run(name, func(t *testing.T) {
			first := withCopies(newSite(t))
			spoil(first)
			if changed, err := first.apply(); err == nil || changed || len(first.services.log) != 0 {
				t.Errorf("first: changed %t, %v, %q", changed, err, first.services.log)
			}
			if _, err := os.Stat(first.want.Data); err == nil {
				t.Error("first: the directory was made")
			}

			s := withCopies(newSite(t))
			if _, err := s.apply(); err != nil {
				t.Fatal(err)
			}
			spoil(s)
			s.write(s.want.ConfigFrom, "good 2")
			s.write(s.want.Source, "two")
			s.write(s.want.Delivered[0].From, "bundle 2")
			if _, err := s.apply(); err == nil || !strings.Contains(err.Error(), KeysName) || len(s.services.log) != 0 {
				t.Errorf("then: %v, %q", err, s.services.log)
			}
			s.has("one", "good 1")
			s.holds("keys 1", "bundle 2")
		})
	}
}

func TestABundleThatCannotBeReadKeepsNothingElseFromBeingDone(t *testing.T) {
	s := withCopies(newSite(t))
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	s.write(s.want.Delivered[0].From, "bad")
	s.write(s.want.ConfigFrom, "good 2")
	if _, err := s.apply(); err == nil || !strings.Contains(err.Error(), BundleName+" is not delivered as a whole") {
		t.Errorf("got %v", err)
	}
	s.has("one", "good 2")
	s.holds("keys 1", "bundle 1")
}

func TestACopyOfWhichSomethingIsMissingIsPutInPlaceAndTold(t *testing.T) {
	s := withCopies(newSite(t))
	whole := s.want.Delivered[0].Read
	missing := errors.New("one is missing")
	s.want.Delivered[0].Read = func(file string) ([]byte, error) {
		text, err := whole(file)
		if err == nil {
			err = &Incomplete{missing}
		}
		return text, err
	}
	for range 2 {
		if _, err := s.apply(); !errors.Is(err, missing) || !strings.Contains(err.Error(), BundleName) {
			t.Errorf("got %v", err)
		}
		s.has("one", "good 1")
		s.holds("keys 1", "bundle 1")
		s.runs(true)
	}
	s.want.Needed[0].Read = s.want.Delivered[0].Read
	s.write(s.want.Needed[0].From, "keys 2")
	if _, err := s.apply(); !errors.Is(err, missing) || len(s.services.log) > 0 {
		t.Errorf("of a file that is needed: %v, %q", err, s.services.log)
	}
	s.holds("keys 1", "bundle 1")
}

func TestCopiesOfSomebodyElseAreReplaced(t *testing.T) {
	s := withCopies(newSite(t))
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	s.theirs = true
	if changed, err := s.apply(); err != nil || !changed {
		t.Errorf("changed %t, %v", changed, err)
	}
	if said := strings.Join(s.said, "\n"); strings.Count(said, KeysName+" replaced") != 1 || strings.Count(said, BundleName+" delivered") != 2 {
		t.Errorf("said:\n%s", said)
	}
	s.holds("keys 1", "bundle 1")
}

func TestAServiceThatDoesNotRunWithNewKeysHasTheOldOnesBack(t *testing.T) {
	s := withCopies(newSite(t))
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	s.write(s.want.Source, "broken")
	s.write(s.want.Needed[0].From, "keys 2")
	if _, err := s.apply(); err == nil {
		t.Fatal("no error")
	}
	s.has("one", "good 1")
	s.holds("keys 1", "bundle 1")
	s.runs(true)
}

func TestCopiesLeadToTheDirectoryOfData(t *testing.T) {
	for name, spoil := range map[string]func(*Copy){
		"elsewhere":       func(c *Copy) { c.To = filepath.Join(t.TempDir(), KeysName) },
		"from nowhere":    func(c *Copy) { c.From = "" },
		"to nowhere":      func(c *Copy) { c.To = "" },
		"read by nobody":  func(c *Copy) { c.Read = nil },
		"below a sibling": func(c *Copy) { c.To = filepath.Join(c.To, "..", "..", "other", KeysName) },
	} {
		s := withCopies(newSite(t))
		spoil(&s.want.Needed[0])
		if _, err := New(s.want, Parts{}); err == nil || !strings.Contains(err.Error(), "a copy") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFollowDeliversABundleAlsoWhileTheConfigurationIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := withCopies(newSite(t))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		installer := s.installer()
		go func() {
			defer close(done)
			installer.Follow(ctx, func(bool, error) {})
		}()
		after := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		after(0)
		s.holds("keys 1", "bundle 1")
		s.write(s.want.ConfigFrom, "bad")
		after(time.Hour)
		s.write(s.want.Delivered[0].From, "bundle 2")
		after(2 * time.Second)
		s.holds("keys 1", "bundle 2")
		s.has("one", "good 1")
		cancel()
		<-done
	})
}
