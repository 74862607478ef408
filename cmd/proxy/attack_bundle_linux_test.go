package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/test/bundletest"
	"github.com/pipeguard/pipeguard/test/harness"
)

func TestABundleThatIsNotRightChangesNothing(t *testing.T) {
	s := newSite(t)
	good := s.build(s.key, 7)
	s.write(s.archive, good)
	p := s.start(t)
	p.until(t, "good", func(s bundle.Status) bool { return s.Revision == 7 })
	p.decides(t, 7)
	p.stop()

	type attack struct {
		name    string
		text    []byte
		reasons []bundle.Reason
	}
	one := func(r bundle.Reason) []bundle.Reason { return []bundle.Reason{r} }
	attacks := []attack{
		{"an older one", s.build(s.key, 6), one(bundle.ReasonRollback)},
		{"its own revision with other content", s.build(s.key, 7, func(b *bundle.Bundle) { b.PolicyRevision = "sha256:00" }), one(bundle.ReasonTwice)},
		{"one for another pool", s.build(s.key, 8, func(b *bundle.Bundle) { b.Audience = "other" }), one(bundle.ReasonAudience)},
		{"one that another key has signed", s.build(bundletest.NewKey(t), 8), one(bundle.ReasonKey)},
		{"one that has ended", s.build(s.key, 8, func(b *bundle.Bundle) {
			b.IssuedAt, b.ExpiresAt = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
		}), one(bundle.ReasonExpired)},
		{"one of tomorrow", s.build(s.key, 8, func(b *bundle.Bundle) {
			b.IssuedAt, b.ExpiresAt = time.Now().Add(24*time.Hour), time.Now().Add(48*time.Hour)
		}), one(bundle.ReasonNotYet)},
		{"Rego that does not compile", s.build(s.key, 8, func(b *bundle.Bundle) { b.Modules = map[string]string{"x.rego": "package"} }), one(bundle.ReasonTest)},
		{"Rego that would permit more", s.build(s.key, 8, func(b *bundle.Bundle) {
			b.Modules = map[string]string{"x.rego": "package pipeguard.node\n\nis_named := true\n"}
		}), one(bundle.ReasonTest)},
		{"an access list of words that nobody knows", s.build(s.key, 8, func(b *bundle.Bundle) {
			b.ACL = fmt.Appendf(nil, `{"schema":%q,"policies":[],"allowAll":true}`, access.Schema)
		}), one(bundle.ReasonTest)},
		{"nothing", nil, one(bundle.ReasonArchive)},
		{"a page of a web server", []byte("<html>"), one(bundle.ReasonArchive)},
		{"two, one behind the other", append(bytes.Clone(s.build(s.key, 8)), s.build(s.key, 9)...), one(bundle.ReasonArchive)},
	}
	later := s.build(s.key, 8)
	for i := range 2 { // each needs a start; the package of bundles tries every byte
		at := (8*i + 1) * len(later) / 16
		bent := bytes.Clone(later)
		bent[at] ^= 0x10
		attacks = append(attacks,
			attack{fmt.Sprintf("a bit of byte %d of 16ths", 8*i+1), bent, []bundle.Reason{bundle.ReasonArchive, bundle.ReasonSignature, bundle.ReasonContent, bundle.ReasonUnsigned, bundle.ReasonSize}},
			attack{fmt.Sprintf("cut at %d 16ths", 8*i+1), later[:at], one(bundle.ReasonArchive)})
	}
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			s.write(s.archive, a.text)
			p := s.start(t)
			now := p.until(t, "refused", func(s bundle.Status) bool { return s.Refused != nil })
			if !hasReason(a.reasons, now.Refused.Reason) || now.Revision != 7 || now.Oldest != 7 {
				t.Errorf("status %+v, %+v", now, now.Refused)
			}
			p.decides(t, 7)
			if got := p.metric(t, "pipeguard_bundle_refused "); got != "pipeguard_bundle_refused 1" {
				t.Error(got)
			}
			p.stop()
		})
	}
	t.Run("and without what was kept", func(t *testing.T) {
		for _, a := range []attack{attacks[2], attacks[3], attacks[4], attacks[6], attacks[13]} {
			if err := os.RemoveAll(s.kept); err != nil {
				t.Fatal(err)
			}
			s.write(s.archive, a.text)
			p := s.start(t)
			p.until(t, a.name, func(s bundle.Status) bool {
				return s.Refused != nil && s.Revision == 0 && s.Invalid == bundle.ReasonNone
			})
			p.shut(t)
			p.stop()
		}
	})
}

func hasReason(of []bundle.Reason, r bundle.Reason) bool {
	for _, one := range of {
		if one == r {
			return true
		}
	}
	return false
}

func TestWhatIsKeptIsNotBelievedUnseen(t *testing.T) {
	s := newSite(t)
	s.write(s.archive, s.build(s.key, 7))
	p := s.start(t)
	p.until(t, "good", func(s bundle.Status) bool { return s.Revision == 7 })
	p.stop()
	if err := os.Remove(s.archive); err != nil {
		t.Fatal(err)
	}
	t.Run("the file is gone", func(t *testing.T) { s.start(t).decides(t, 7) })
	kept, err := filepath.Glob(filepath.Join(s.kept, "bundle-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%q, %v", kept, err)
	}
	t.Run("it was signed by a key that is not pinned any more", func(t *testing.T) {
		s.write(s.keys, bundletest.NewKey(t).PublicPEM())
		p := s.start(t)
		if now := p.state(t); now.Refused == nil || now.Refused.Reason != bundle.ReasonKey || now.Oldest != 0 {
			t.Errorf("status %+v, %+v", now, now.Refused)
		}
		p.shut(t)
		s.write(s.keys, s.key.PublicPEM())
	})
	t.Run("it is an older one under its name", func(t *testing.T) {
		now := []byte(read(t, kept[0]))
		s.write(kept[0], s.build(s.key, 6))
		p := s.start(t)
		if now := p.state(t); now.Refused == nil || now.Refused.Reason != bundle.ReasonRollback {
			t.Errorf("status %+v, %+v", now, now.Refused)
		}
		p.shut(t)
		s.write(kept[0], now)
	})
	t.Run("what was seen cannot be read", func(t *testing.T) {
		s.write(filepath.Join(s.kept, "state-default.json"), []byte(`{"schema":"pipeguard.dev/bundle-state/v1","audience":"default"`))
		stderr := new(harness.Output)
		code := run(t.Context(), []string{"--socket-dir", filepath.Join(shortDir(t), "s"), "--config", s.rules}, io.Discard, stderr)
		if code != 1 || !strings.Contains(stderr.String(), "which bundles are too old") {
			t.Errorf("exit code %d:\n%s", code, stderr)
		}
	})
}

// The connection stays open, and no event tells of the end but the clock.
func TestABundleThatEndsClosesAllPipes(t *testing.T) {
	s := newSite(t)
	var end time.Time
	s.write(s.archive, s.build(s.key, 7, func(b *bundle.Bundle) {
		end = time.Now().Add(4 * time.Second).Truncate(time.Second)
		b.ExpiresAt = end
	}))
	p := s.start(t)
	p.until(t, "good", func(s bundle.Status) bool { return s.Revision == 7 })
	s.write(s.archive, s.build(s.key, 6)) // which changes nothing
	if got := p.pathExists(t); got != codes.OK && time.Now().Before(end) {
		t.Errorf("before its end: %v", got)
	}
	p.until(t, "ended", func(s bundle.Status) bool { return s.Invalid == bundle.ReasonExpired })
	if time.Now().Before(end) {
		t.Error("it ended too early")
	}
	p.shut(t)
	p.stop()
	again := s.start(t)
	again.until(t, "after a start", func(s bundle.Status) bool { return s.Refused != nil && s.Revision == 0 })
	again.shut(t)
}

func TestAKeyThatIsTakenBackClosesAllPipesWhileTheProxyRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT TESTED: files are read every 10s")
	}
	t.Parallel()
	s := newSite(t)
	far := bundle.LatestRevision(time.Now())
	s.write(s.archive, s.build(s.key, far))
	p := s.start(t)
	p.until(t, "good", func(s bundle.Status) bool { return s.Revision == far })
	next := bundletest.NewKey(t)
	s.write(s.keys, next.PublicPEM())
	p.until(t, "the old key is taken back", func(s bundle.Status) bool { return s.Invalid == bundle.ReasonNone })
	p.shut(t)
	s.write(s.archive, s.build(next, 7)) // whatever revisions the old key has signed
	p.until(t, "the new key", func(s bundle.Status) bool { return s.Revision == 7 && s.Oldest == 7 })
	p.decides(t, 7)
	p.stop()
	s.start(t).decides(t, 7)
}

func TestFaultsOfTheBundleStopTheStart(t *testing.T) {
	s := newSite(t)
	private := bundletest.PrivatePEM(t, s.key)
	good := read(t, s.rules)
	for name, c := range map[string]struct {
		change func() error
		want   string
	}{
		"no keys":           {func() error { return os.Remove(s.keys) }, "keys"},
		"the private key":   {func() error { return os.WriteFile(s.keys, []byte(private), 0o600) }, "private key"},
		"no key in it":      {func() error { return os.WriteFile(s.keys, nil, 0o600) }, "is empty"},
		"a pool of no name": {func() error { return s.config(strings.Replace(good, "pool: default", "pool: Default", 1)) }, "bundle.pool"},
		"neither file nor url": {func() error {
			return s.config(strings.Replace(good, fmt.Sprintf("file: %q, ", s.archive), "", 1))
		}, "bundle.file"},
		"a server without TLS": {func() error {
			return s.config(strings.Replace(good, fmt.Sprintf("file: %q", s.archive), "url: http://127.0.0.1/bundles/default", 1))
		}, "bundle.url"},
		"a directory that is a file": {func() error {
			return errors.Join(os.RemoveAll(s.kept), os.WriteFile(s.kept, nil, 0o600))
		}, s.kept},
	} {
		t.Run(name, func(t *testing.T) {
			s.write(s.keys, s.key.PublicPEM())
			s.write(s.rules, []byte(good))
			if err := c.change(); err != nil {
				t.Fatal(err)
			}
			stderr := new(harness.Output)
			code := run(t.Context(), []string{"--socket-dir", filepath.Join(shortDir(t), "s"), "--config", s.rules}, io.Discard, stderr)
			if code != 1 || !strings.Contains(stderr.String(), c.want) || strings.Contains(stderr.String(), private[40:80]) {
				t.Errorf("exit code %d:\n%s", code, stderr)
			}
		})
	}
}

func (s *site) config(text string) error { return os.WriteFile(s.rules, []byte(text), 0o600) }
