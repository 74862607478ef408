package bundle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func keysOf(t *testing.T, keys ...*Key) Keys {
	t.Helper()
	var text []byte
	for _, k := range keys {
		text = append(text, k.PublicPEM()...)
	}
	parsed, err := ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestAKeyThatIsPinnedNoMoreDecidesNothing(t *testing.T) {
	n := newNode(t)
	k := n.start(t)
	other := newTestKey(t)
	offer(t, k, build(t, n.key), "")
	if err := k.Pin(keysOf(t, n.key, other)); err != nil || k.Valid() != nil {
		t.Fatalf("during a rotation: %v, %v", err, k.Valid())
	}
	if err := k.Pin(keysOf(t, other)); err != nil {
		t.Fatal(err)
	}
	if s := k.Status(); ReasonOf(k.Valid()) != ReasonNone || s.Refused == nil || s.Refused.Reason != ReasonKey || s.Revision != 0 {
		t.Errorf("after it: %v, %+v", k.Valid(), s)
	}
	offer(t, k, build(t, n.key), ReasonKey)
	offer(t, k, build(t, n.key, revision(9)), ReasonKey)
	offer(t, k, build(t, other, revision(6)), ReasonRollback) // what was seen is not forgotten with a key
	offer(t, k, build(t, other, revision(8)), "")
	if k.Valid() != nil || n.decides.Load() != 8 {
		t.Errorf("the new key: %v, revision %d", k.Valid(), n.decides.Load())
	}
	if err := k.Pin(Keys{}); err == nil || k.Valid() != nil {
		t.Errorf("no key at all: %v, %v", err, k.Valid())
	}
}

func TestAKeyThatIsPinnedAgainBringsItsBundleBack(t *testing.T) {
	n := newNode(t)
	k := n.start(t)
	first := build(t, n.key)
	offer(t, k, first, "")
	for _, keys := range []Keys{keysOf(t, newTestKey(t)), keysOf(t, n.key)} {
		if err := k.Pin(keys); err != nil {
			t.Fatal(err)
		}
	}
	if k.Valid() == nil {
		t.Error("before it was offered again")
	}
	offer(t, k, first, "")
	if k.Valid() != nil {
		t.Error(k.Valid())
	}
}

func TestTheFileOfKeysIsFollowed(t *testing.T) {
	n := newNode(t)
	k := n.start(t)
	offer(t, k, build(t, n.key), "")
	file, next := filepath.Join(t.TempDir(), "keys.pem"), newTestKey(t)
	write := func(text []byte, mode os.FileMode) {
		if err := errors.Join(os.WriteFile(file, text, 0o600), os.Chmod(file, mode)); err != nil {
			t.Fatal(err)
		}
	}
	write(n.key.PublicPEM(), 0o600)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			k.FollowKeys(ctx, file, n.key.PublicPEM(), time.Second)
		}()
		for _, c := range []struct {
			name  string
			text  []byte
			mode  os.FileMode
			valid bool
		}{
			{"half a file", n.key.PublicPEM()[:40], 0o600, true},
			{"empty", nil, 0o600, true},
			{"a private key", []byte("-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"), 0o600, true},
			{"both", append(n.key.PublicPEM(), next.PublicPEM()...), 0o600, true},
			{"the next alone, where everybody can write", next.PublicPEM(), 0o666, true},
			{"the next alone", next.PublicPEM(), 0o600, false},
		} {
			if c.mode != 0o600 && runtime.GOOS == "windows" {
				continue // which has access lists instead of modes
			}
			write(c.text, c.mode)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if valid := k.Valid() == nil; valid != c.valid {
				t.Errorf("%s: valid %t", c.name, valid)
			}
		}
		cancel()
		<-done
	})
}

func TestABundleIsOfferedAgainUnderNewKeys(t *testing.T) {
	n := newNode(t)
	k := n.start(t)
	next := newTestKey(t)
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if err := os.WriteFile(file, build(t, next), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- k.Follow(ctx, file, time.Second) }()
		synctest.Wait()
		if k.Valid() == nil {
			t.Error("of a key that is not pinned")
		}
		if err := k.Pin(keysOf(t, next)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // and not the minute after which what stays the same is offered again
		synctest.Wait()
		if err := k.Valid(); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
