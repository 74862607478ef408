package certs

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pipeguard/pipeguard/internal/periodic"
)

// recorder keeps the reasons of events.
type recorder struct{ reasons, notes []string }

func (r *recorder) Eventf(_, _ runtime.Object, _, reason, _, _ string, args ...any) {
	r.reasons = append(r.reasons, reason)
	for _, a := range args {
		if note, ok := a.(string); ok {
			r.notes = append(r.notes, note)
		}
	}
}

// stranger is an authority and what it issued, for hosts.
func stranger(t *testing.T, lifetime time.Duration, hosts ...string) map[string][]byte {
	t.Helper()
	a, err := NewAuthority(hosts, time.Now(), lifetime)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := a.Issue(hosts, time.Now(), lifetime)
	if err != nil {
		t.Fatal(err)
	}
	data, err := state{current: a, leaf: leaf}.encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestContentThatBreaksIsReplacedWithoutAMiss(t *testing.T) {
	garbage := []byte("garbage")
	for name, c := range map[string]struct {
		spoil  func(t *testing.T, data map[string][]byte) map[string][]byte
		renews bool // the authority must become another
		silent bool // nothing was there to be complained about
	}{
		"the secret is deleted": {func(*testing.T, map[string][]byte) map[string][]byte { return nil }, true, true},
		"the secret is emptied": {func(*testing.T, map[string][]byte) map[string][]byte { return map[string][]byte{} }, true, true},
		"all of it is garbage": {func(_ *testing.T, d map[string][]byte) map[string][]byte {
			for key := range d {
				d[key] = garbage
			}
			d[keyNext], d[keyNextKey], d[keyPrevious] = garbage, garbage, garbage
			return d
		}, true, false},
		"the authority is garbage": {func(_ *testing.T, d map[string][]byte) map[string][]byte { d[keyAuthority] = garbage; return d }, true, false},
		"the authority is gone":    {func(_ *testing.T, d map[string][]byte) map[string][]byte { delete(d, keyAuthority); return d }, true, false},
		"its key is garbage":       {func(_ *testing.T, d map[string][]byte) map[string][]byte { d[keyAuthorityKey] = garbage; return d }, true, false},
		"its key is gone":          {func(_ *testing.T, d map[string][]byte) map[string][]byte { delete(d, keyAuthorityKey); return d }, true, false},
		"its key is the leaf's": {func(_ *testing.T, d map[string][]byte) map[string][]byte {
			d[keyAuthorityKey] = d[keyLeafKey]
			return d
		}, true, false},
		"its key is of RSA": {func(t *testing.T, d map[string][]byte) map[string][]byte {
			key, err := rsa.GenerateKey(rand.Reader, 2048)
			if err != nil {
				t.Fatal(err)
			}
			der, err := x509.MarshalPKCS8PrivateKey(key)
			if err != nil {
				t.Fatal(err)
			}
			d[keyAuthorityKey] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
			return d
		}, true, false},
		"the authority is a stranger's": {func(t *testing.T, d map[string][]byte) map[string][]byte {
			d[keyAuthority] = stranger(t, 9*day, names.hosts()...)[keyAuthority]
			return d
		}, true, false},
		"there are two authorities": {func(_ *testing.T, d map[string][]byte) map[string][]byte {
			d[keyAuthority] = slices.Concat(d[keyAuthority], d[keyAuthority])
			return d
		}, true, false},
		"the authority is the leaf": {func(_ *testing.T, d map[string][]byte) map[string][]byte { d[keyAuthority] = d[keyLeaf]; return d }, true, false},
		"the leaf is garbage":       {func(_ *testing.T, d map[string][]byte) map[string][]byte { d[keyLeaf] = garbage; return d }, false, false},
		"the leaf is gone":          {func(_ *testing.T, d map[string][]byte) map[string][]byte { delete(d, keyLeaf); return d }, false, false},
		"the leaf's key is garbage": {func(_ *testing.T, d map[string][]byte) map[string][]byte { d[keyLeafKey] = garbage; return d }, false, false},
		"the leaf's key is another's": {func(_ *testing.T, d map[string][]byte) map[string][]byte {
			d[keyLeafKey] = d[keyAuthorityKey]
			return d
		}, false, false},
		"the leaf is a stranger's": {func(t *testing.T, d map[string][]byte) map[string][]byte {
			s := stranger(t, 9*day, names.hosts()...)
			d[keyLeaf], d[keyLeafKey] = s[keyLeaf], s[keyLeafKey]
			return d
		}, false, true},
		"authority and leaf are for another service": {func(t *testing.T, _ map[string][]byte) map[string][]byte {
			return stranger(t, 9*day, "other.default.svc")
		}, true, false},
		"a next authority is garbage": {func(_ *testing.T, d map[string][]byte) map[string][]byte { d[keyNext] = garbage; return d }, false, false},
		"a next authority has no key": {func(t *testing.T, d map[string][]byte) map[string][]byte {
			d[keyNext] = stranger(t, 9*day, names.hosts()...)[keyAuthority]
			return d
		}, false, false},
		"a previous authority is garbage": {func(_ *testing.T, d map[string][]byte) map[string][]byte { d[keyPrevious] = garbage; return d }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, events := newMemory(), &recorder{}
				core, logs := observer.New(zap.WarnLevel)
				defer lead(t, m.connect(), weeks, func(o *Options) { o.Events, o.Log = events, zap.New(core) })()
				settle()
				pass(t, m, day, day)
				before, _ := parse(m.content(), names.hosts(), time.Now())
				watchWrites(t, m)
				m.setSecret(c.spoil(t, m.content()))
				pass(t, m, slow+2*lag, time.Minute)
				expectSettled(t, m)
				after, _ := parse(m.content(), names.hosts(), time.Now())
				if renewed := !after.current.certificate.Equal(before.current.certificate); renewed != c.renews {
					t.Errorf("another authority: %v, want %v", renewed, c.renews)
				}
				complained := slices.Contains(events.reasons, reasonReplaced) && logs.FilterMessageSnippet("replaced").Len() == 1
				if complained == c.silent {
					t.Errorf("events %q, log %v", events.reasons, logs.All())
				}
			})
		})
	}
}

func TestTheFirstInstallationWaitsForNobody(t *testing.T) {
	for name, data := range map[string]map[string][]byte{"no secret": nil, "an empty one": {}, "one of type kubernetes.io/tls": {keyLeaf: {}, keyLeafKey: {}}} {
		synctest.Test(t, func(t *testing.T) {
			m, events, metrics := newMemory(), &recorder{}, NewMetrics(nil)
			m.setSecret(data)
			begun := time.Now()
			defer lead(t, m.connect(), func(o *Options) { o.Events, o.Metrics = events, metrics })()
			synctest.Wait()
			if took := time.Since(begun); took != 0 {
				t.Errorf("%s: took %v", name, took)
			}
			expectSettled(t, m)
			if diff := cmp.Diff([]string{reasonPrepared, reasonRotated, reasonIssued}, events.reasons); diff != "" {
				t.Errorf("%s: events (-want +got):\n%s", name, diff)
			}
			if a, s := measured(t, metrics.rotations.WithLabelValues("authority")), measured(t, metrics.rotations.WithLabelValues("serving")); a != 1 || s != 1 {
				t.Errorf("%s: rotations %v, %v", name, a, s)
			}
		})
	}
}

func TestWhatExpiredWhileTheClusterWasOffIsReplacedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		stop := lead(t, m.connect())
		settle()
		stop()
		time.Sleep(800 * day)
		defer lead(t, m.connect())()
		synctest.Wait()
		expectSettled(t, m)
	})
}

func TestABundleThatSomebodyEditsIsPutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		defer lead(t, m.connect())()
		settle()
		good := m.configuration(names.Configurations[0]).Webhooks[0].Bundle
		foreign := stranger(t, day, names.hosts()...)[keyAuthority]
		for _, bundle := range [][]byte{nil, []byte("garbage"), foreign, slices.Concat(good, foreign), good[:len(good)-1]} {
			c := m.configuration(names.Configurations[1])
			c.Webhooks[1].Bundle = bundle
			m.setConfiguration(c)
			time.Sleep(2 * pause)
			synctest.Wait()
			expectSettled(t, m)
			if got := m.configuration(c.Name).Webhooks[1].Bundle; !bytes.Equal(got, good) {
				t.Errorf("%q became %q", bundle, got)
			}
		}
	})
}

func TestSomebodyWhoWantsAnotherBundleIsNotFoughtWithoutPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		other := m.connect()
		defer lead(t, m.connect())()
		settle()
		before := m.written()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			if !periodic.Wait(t.Context(), time.Second, other.changes) {
				return
			}
			c := m.configuration(names.Configurations[0])
			if len(c.Webhooks[0].Bundle) > 0 {
				c.Webhooks[0].Bundle = nil
				m.setConfiguration(c)
			}
		}
		if n := m.written() - before; n < 10 || n > 61 {
			t.Errorf("%d writes in a minute", n)
		}
	})
}

func TestAMissingConfigurationStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.deleteConfiguration(names.Configurations[1])
		core, logs := observer.New(zap.DebugLevel)
		defer lead(t, m.connect(), weeks, func(o *Options) { o.Log = zap.New(core) })()
		settle()
		first := m.content()[keyAuthority]
		pass(t, m, 30*day, day)
		expectSettled(t, m)
		if bytes.Equal(first, m.content()[keyAuthority]) {
			t.Error("the authority was not replaced")
		}
		if n := logs.FilterMessage("configuration missing").Len(); n != 1 {
			t.Errorf("reported %d times", n)
		}
		m.setConfiguration(Configuration{Name: names.Configurations[1], Webhooks: []Webhook{{Name: "late"}}})
		time.Sleep(2 * pause)
		synctest.Wait()
		expectSettled(t, m)
	})
}

func TestNoAuthorityIsReplacedWhileAConfigurationCannotBeReadOrWritten(t *testing.T) {
	for _, call := range []string{names.Configurations[1], "write " + names.Configurations[1]} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			s := m.connect()
			core, logs := observer.New(zap.ErrorLevel)
			defer lead(t, s, func(o *Options) { o.Authority, o.Leaf, o.Interval, o.Log = 6*day, 2*day, 12*time.Hour, zap.New(core) })()
			settle()
			first := m.content()
			s.fail(func(c string) error {
				if c == call {
					return errors.New("forbidden")
				}
				return nil
			})
			pass(t, m, 5*day, 6*time.Hour) // the hand-over begins after four
			if now := m.content(); !bytes.Equal(now[keyAuthority], first[keyAuthority]) {
				t.Errorf("%s: the authority was replaced", call)
			} else if bytes.Equal(now[keyLeaf], first[keyLeaf]) {
				t.Errorf("%s: the leaf was not renewed", call)
			}
			if n := logs.Len(); n == 0 || n > 5*24*4 || !strings.Contains(logs.All()[0].ContextMap()["error"].(string), "forbidden") {
				t.Errorf("%s: %d errors logged", call, n)
			}
			s.fail(nil)
			pass(t, m, day, 10*time.Minute)
			expectSettled(t, m)
			if bytes.Equal(m.content()[keyAuthority], first[keyAuthority]) {
				t.Errorf("%s: the authority was not replaced when it could be", call)
			}
		})
	}
}

func TestNobodyIsCutOffByWhoCannotSeeWhomTheyTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		stop := lead(t, m.connect())
		settle()
		stop()
		s := m.connect()
		s.fail(func(call string) error {
			if call == names.Configurations[0] {
				return errors.New("forbidden")
			}
			return nil
		})
		m.setSecret(nil)
		defer lead(t, s)()
		before := m.written()
		pass(t, m, time.Hour, time.Minute)
		if m.written() != before {
			t.Error("something was written")
		}
	})
}

func TestWithNothingDueNothingIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.setSecret(map[string][]byte{"mine": []byte("stays")})
		defer lead(t, m.connect(), func(o *Options) { o.Interval = time.Hour })()
		settle()
		before := m.written()
		pass(t, m, 19*day, day)
		if n := m.written() - before; n != 0 {
			t.Errorf("%d writes", n)
		}
		if got := string(m.content()["mine"]); got != "stays" {
			t.Errorf("another's entry became %q", got)
		}
	})
}
