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
	offer(t, k, build(t, other, revision(8)), "")
	if k.Valid() != nil || n.decides.Load() != 8 {
		t.Errorf("the new key: %v, revision %d", k.Valid(), n.decides.Load())
	}
	if err := k.Pin(Keys{}); err == nil || k.Valid() != nil {
		t.Errorf("no key at all: %v, %v", err, k.Valid())
	}
}

// farAhead is a revision that nodes take and none in seconds since 1970 can follow.
var farAhead = uint64(issued.Add(360 * 24 * time.Hour).Unix())

func TestARevisionCountsWhileItsKeyIsPinned(t *testing.T) {
	n := newNode(t)
	leaked, next := n.key, newTestKey(t)
	seconds := uint64(issued.Unix())
	k := n.start(t)
	offer(t, k, build(t, leaked, revision(seconds)), "")
	offer(t, k, build(t, leaked, revision(farAhead)), "")
	first := build(t, next, revision(seconds+1))
	offer(t, k, first, ReasonKey)
	if err := k.Pin(keysOf(t, leaked, next)); err != nil {
		t.Fatal(err)
	}
	offer(t, k, first, ReasonRollback) // the highest of both counts
	if s := k.Status(); s.Oldest != farAhead {
		t.Errorf("both pinned: %+v", s)
	}
	if err := k.Pin(keysOf(t, next)); err != nil {
		t.Fatal(err)
	}
	if s := k.Status(); s.Oldest != 0 || k.Valid() == nil {
		t.Errorf("the new key alone: %+v", s)
	}
	offer(t, k, build(t, leaked, revision(farAhead+1)), ReasonKey)
	offer(t, k, first, "")

	check := func(when string) {
		t.Helper()
		if s := k.Status(); k.Valid() != nil || s.Revision != seconds+1 || s.Oldest != seconds+1 || n.decides.Load() != seconds+1 {
			t.Errorf("%s: %v, %+v", when, k.Valid(), s)
		}
		offer(t, k, build(t, next, revision(seconds)), ReasonRollback)
		offer(t, k, build(t, next, revision(seconds+1), func(b *Bundle) { b.PolicyRevision = "x" }), ReasonTwice)
		offer(t, k, build(t, leaked, revision(farAhead)), ReasonKey)
	}
	check("with the bundle of the new key")
	n.key = next
	k = n.start(t)
	check("after a start")

	// A key that is pinned again brings back what was seen of it.
	if err := k.Pin(keysOf(t, leaked, next)); err != nil {
		t.Fatal(err)
	}
	offer(t, k, build(t, next, revision(seconds+2)), ReasonRollback)
	offer(t, k, build(t, leaked, revision(farAhead-1)), ReasonRollback)
}

func TestAKeyThatIsReplacedWhileTheNodeIsOffLeavesNoRevisions(t *testing.T) {
	n := newNode(t)
	offer(t, n.start(t), build(t, n.key, revision(farAhead)), "")
	n.key = newTestKey(t)
	k := n.start(t)
	if s := k.Status(); s.Oldest != 0 || s.Refused == nil || s.Refused.Reason != ReasonKey || k.Valid() == nil {
		t.Errorf("%v, %+v", k.Valid(), s)
	}
	offer(t, k, build(t, n.key), "")
	n.minimum = 8
	if s := n.start(t).Status(); s.Oldest != 8 || s.Refused == nil || s.Refused.Reason != ReasonRollback {
		t.Errorf("with a minimum: %+v", s)
	}
}

func TestARotationForgetsNoRevision(t *testing.T) {
	n := newNode(t)
	k := n.start(t)
	next := newTestKey(t)
	if err := k.Pin(keysOf(t, n.key, next)); err != nil {
		t.Fatal(err)
	}
	offer(t, k, build(t, n.key), "")
	if changed, err := k.Offer(t.Context(), build(t, next)); changed || err != nil {
		t.Errorf("the same of the new key: %t, %v", changed, err)
	}
	offer(t, k, build(t, next, revision(6)), ReasonRollback)
	if err := k.Pin(keysOf(t, next)); err != nil {
		t.Fatal(err)
	}
	offer(t, k, build(t, next, revision(6)), ReasonRollback)
	n.key = next
	k = n.start(t)
	if s := k.Status(); k.Valid() != nil || s.Revision != 7 || s.Key != next.ID() {
		t.Errorf("after a start: %v, %+v", k.Valid(), s)
	}
	offer(t, k, build(t, next, revision(6)), ReasonRollback)
}

func TestWhatHasEndedStaysSoUnderAnotherKey(t *testing.T) {
	n := newNode(t)
	k := n.start(t)
	next := newTestKey(t)
	if err := k.Pin(keysOf(t, n.key, next)); err != nil {
		t.Fatal(err)
	}
	offer(t, k, build(t, n.key), "")
	offer(t, k, build(t, next), "")
	n.set(issued.Add(life))
	k.noteEnd()
	n.set(issued.Add(time.Hour)) // the clock is set back
	n.key = next
	k = n.start(t)
	if s := k.Status(); k.Valid() == nil || s.Refused == nil || s.Refused.Reason != ReasonExpired {
		t.Errorf("%v, %+v", k.Valid(), s)
	}
	offer(t, k, build(t, next), ReasonExpired)
}

func TestManyKeysLeaveRoomForThoseThatArePinned(t *testing.T) {
	n := newNode(t)
	k := n.start(t)
	stays, all := n.key, []*Key{n.key}
	offer(t, k, build(t, stays, revision(farAhead)), "")
	for i := range uint64(maxSeen + 5) {
		next := newTestKey(t)
		all = append(all, next)
		if err := k.Pin(keysOf(t, stays, next)); err != nil {
			t.Fatal(err)
		}
		offer(t, k, build(t, next, revision(farAhead+1+i)), "")
	}
	check := func(key *Key, oldest uint64) {
		t.Helper()
		n.key = key
		if s := n.start(t).Status(); s.Oldest != oldest {
			t.Errorf("oldest %d, want %d", s.Oldest, oldest)
		}
	}
	check(stays, farAhead)
	check(all[len(all)-1], farAhead+maxSeen+5)
	check(all[len(all)-maxSeen+1], farAhead+5+2)
	check(all[len(all)-maxSeen], 0) // forgotten long after it was taken away
	if len(k.seen.Keys) != maxSeen {
		t.Errorf("%d keys", len(k.seen.Keys))
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
