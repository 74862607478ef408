package certs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// follow runs a Follower until the test ends.
func follow(t *testing.T, source SecretCopy, change ...func(*FollowerOptions)) *Follower {
	t.Helper()
	o := FollowerOptions{Names: names, Copy: source}
	for _, c := range change {
		c(&o)
	}
	f, err := NewFollower(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestAReplicaIsNotReadyBeforeThereIsACertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.setSecret(nil)
		core, logs := observer.New(zap.DebugLevel)
		f := follow(t, m.connect(), func(o *FollowerOptions) { o.Log = zap.New(core) })
		for _, data := range []map[string][]byte{nil, {}, {keyLeaf: {}, keyLeafKey: {}}, {keyLeaf: []byte("garbage"), keyLeafKey: []byte("garbage")}} {
			m.setSecret(data)
			time.Sleep(time.Hour)
			synctest.Wait()
			if err := f.Check(nil); !errors.Is(err, errNoCertificate) {
				t.Errorf("%v: %v", data, err)
			}
			if c, err := f.GetCertificate(nil); c != nil || err == nil {
				t.Errorf("%v: served", data)
			}
		}
		if n, all := logs.FilterLevelExact(zap.ErrorLevel).Len(), logs.Len(); n != 1 || all != 3 {
			t.Errorf("%d errors in %d lines: %v", n, all, logs.All())
		}
		m.setSecret(good(t))
		synctest.Wait()
		if err := f.Check(nil); err != nil {
			t.Error(err)
		}
	})
}

func TestTheLastGoodCertificateIsServedWhileTheSecretIsNotGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, metrics := newMemory(), NewMetrics(nil)
		core, logs := observer.New(zap.ErrorLevel)
		f := follow(t, m.connect(), func(o *FollowerOptions) { o.Log, o.Metrics = zap.New(core), metrics })
		first := good(t)
		m.setSecret(first)
		synctest.Wait()
		served, err := f.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := measured(t, metrics.expiry.WithLabelValues("serving")); got != float64(served.Leaf.NotAfter.Unix()) {
			t.Errorf("expiry %v", got)
		}
		if got := measured(t, metrics.expiry.WithLabelValues("authority")); got != float64(time.Now().Add(365*day).Unix()) {
			t.Errorf("expiry of the authority %v", got)
		}
		other := good(t)
		expired := good(t)
		time.Sleep(31 * day) // all of these are from before
		for name, data := range map[string]map[string][]byte{
			"deleted":                 nil,
			"emptied":                 {},
			"another's key":           {keyAuthority: first[keyAuthority], keyLeaf: first[keyLeaf], keyLeafKey: other[keyLeafKey]},
			"another's authority":     {keyAuthority: other[keyAuthority], keyAuthorityKey: other[keyAuthorityKey], keyLeaf: first[keyLeaf], keyLeafKey: first[keyLeafKey]},
			"no authority":            {keyLeaf: other[keyLeaf], keyLeafKey: other[keyLeafKey]},
			"expired":                 expired,
			"for another service":     stranger(t, day, "other.default.svc"),
			"an authority for a leaf": {keyAuthority: other[keyAuthority], keyAuthorityKey: other[keyAuthorityKey], keyLeaf: other[keyAuthority], keyLeafKey: other[keyAuthorityKey]},
		} {
			m.setSecret(data)
			synctest.Wait()
			if now, err := f.GetCertificate(nil); err != nil || now != served {
				t.Errorf("%s: replaced, %v", name, err)
			}
		}
		if logs.Len() < 6 {
			t.Errorf("%d errors were logged", logs.Len())
		}
		next := good(t)
		m.setSecret(next)
		synctest.Wait()
		if now, err := f.GetCertificate(nil); err != nil || now == served {
			t.Errorf("not replaced, %v", err)
		}
	})
}

func TestACertificateThatIsNotValidYetIsServedWhenItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		behind := 3 * time.Hour // this replica's clock, until somebody sets it
		f := follow(t, m.connect(), func(o *FollowerOptions) { o.Now = func() time.Time { return time.Now().Add(-behind) } })
		m.setSecret(good(t))
		synctest.Wait()
		if err := f.Check(nil); err == nil {
			t.Fatal("served before it is valid")
		}
		time.Sleep(2*time.Hour + retryFollow)
		synctest.Wait()
		if err := f.Check(nil); err != nil {
			t.Error(err)
		}
	})
}
