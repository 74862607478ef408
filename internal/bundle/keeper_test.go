package bundle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAKeeperTakesNewerBundlesAndNoOthers(t *testing.T) {
	n := newNode(t)
	k := n.start(t)
	if ReasonOf(k.Valid()) != ReasonNone {
		t.Errorf("before the first: %v", k.Valid())
	}
	first := build(t, n.key)
	offer(t, k, first, "")
	if n.decides.Load() != 7 || k.Valid() != nil {
		t.Errorf("revision %d decides, %v", n.decides.Load(), k.Valid())
	}
	for name, c := range map[string]struct {
		raw  []byte
		want Reason
	}{
		"an older one":                     {build(t, n.key, revision(6)), ReasonRollback},
		"the same revision, other content": {build(t, n.key, func(b *Bundle) { b.PolicyRevision = "x" }), ReasonTwice},
		"the same revision, for longer":    {build(t, n.key, func(b *Bundle) { b.ExpiresAt = b.ExpiresAt.Add(life) }), ReasonTwice},
		"for another pool":                 {build(t, n.key, revision(8), func(b *Bundle) { b.Audience = "linux" }), ReasonAudience},
		"of a stranger":                    {build(t, newTestKey(t), revision(8)), ReasonKey},
		"one that has ended":               {build(t, n.key, revision(8), func(b *Bundle) { b.ExpiresAt = issued.Add(time.Minute) }), ReasonExpired},
		"one of tomorrow":                  {build(t, n.key, revision(8), func(b *Bundle) { b.IssuedAt = issued.Add(life / 2) }), ReasonNotYet},
		"half of one":                      {first[:100], ReasonArchive},
		"a newer one with a file too many": {repack(t, build(t, n.key, revision(8)), func(f map[string][]byte) { f["/policies/x.rego"] = nil }), ReasonUnsigned},
		"nothing":                          {nil, ReasonArchive},
	} {
		offer(t, k, c.raw, c.want)
		if s := k.Status(); n.decides.Load() != 7 || k.Valid() != nil || s.Revision != 7 || s.Refused == nil || s.Refused.Reason != c.want {
			t.Errorf("%s: revision %d decides; %v; status %+v", name, n.decides.Load(), k.Valid(), s)
		}
	}
	if changed, err := k.Offer(t.Context(), first); changed || err != nil || k.Status().Refused != nil {
		t.Errorf("the same again: %t, %v", changed, err)
	}
	offer(t, k, build(t, n.key, revision(8)), "")
	offer(t, k, first, ReasonRollback)
}

func TestWhatFailsItsTestsChangesNothing(t *testing.T) {
	n := newNode(t)
	k := n.start(t)
	offer(t, k, build(t, n.key), "")
	n.fail = errors.New("node.rego:3: test failed")
	offer(t, k, build(t, n.key, revision(9)), ReasonTest)
	if s := k.Status(); n.decides.Load() != 7 || s.Oldest != 7 || !strings.Contains(s.Refused.Message, "node.rego:3") {
		t.Errorf("status %+v", s)
	}
	n.fail = nil
	offer(t, k, build(t, n.key, revision(8)), "") // revision 9 was never taken
}

func TestRevisionsOutliveTheProcess(t *testing.T) {
	n := newNode(t)
	old, now := build(t, n.key), build(t, n.key, revision(20), func(b *Bundle) { b.MinimumRevision = 15 })
	k := n.start(t)
	offer(t, k, old, "")
	offer(t, k, now, "")

	k = n.start(t)
	if s := k.Status(); n.decides.Load() != 20 || k.Valid() != nil || s.Revision != 20 || s.Oldest != 20 {
		t.Errorf("after a start: %d decides, %+v", n.decides.Load(), s)
	}
	offer(t, k, old, ReasonRollback)

	// The last bundle is lost: what was seen still counts, and the same one is taken again.
	for _, name := range bundlesIn(t, n.dir) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	k = n.start(t)
	if ReasonOf(k.Valid()) != ReasonNone {
		t.Errorf("without a bundle: %v", k.Valid())
	}
	offer(t, k, old, ReasonRollback)
	offer(t, k, now, "")
}

func bundlesIn(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "bundle-*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestOneBundleIsKeptAndNobodyElseCanReadIt(t *testing.T) {
	n := newNode(t)
	k := n.start(t)
	for r := range uint64(3) {
		offer(t, k, build(t, n.key, revision(10+r)), "")
	}
	all := bundlesIn(t, n.dir)
	if len(all) != 1 {
		t.Errorf("%q", all)
	}
	for _, name := range append(all, disk{n.dir}.stateFile("windows")) {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
}

func TestWhatIsKeptIsVerifiedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, n *node)
		want   Reason
	}{
		"cut off": {func(t *testing.T, n *node) {
			if err := os.Truncate(bundlesIn(t, n.dir)[0], 200); err != nil {
				t.Fatal(err)
			}
		}, ReasonArchive},
		"exchanged for an older one": {func(t *testing.T, n *node) {
			if err := os.WriteFile(bundlesIn(t, n.dir)[0], build(t, n.key, revision(6)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, ReasonRollback},
		"signed with a key that is pinned no more": {func(t *testing.T, n *node) { n.key = newTestKey(t) }, ReasonKey},
		"ended while nobody looked":                {func(_ *testing.T, n *node) { n.set(issued.Add(2 * life)) }, ReasonExpired},
		"the clock went back":                      {func(_ *testing.T, n *node) { n.set(issued.Add(-life)) }, ReasonNotYet},
		"a minimum was set":                        {func(_ *testing.T, n *node) { n.minimum = 8 }, ReasonRollback},
		"it does not compile any more":             {func(_ *testing.T, n *node) { n.fail = errors.New("no") }, ReasonTest},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			offer(t, n.start(t), build(t, n.key), "")
			c.change(t, n)
			k := n.start(t)
			if s := k.Status(); n.decides.Load() != 0 || s.Refused == nil || s.Refused.Reason != c.want || ReasonOf(k.Valid()) != ReasonNone {
				t.Errorf("revision %d decides; %v; status %+v", n.decides.Load(), k.Valid(), s)
			}
		})
	}
}

func TestAStateThatCannotBeReadStopsTheStart(t *testing.T) {
	for name, text := range map[string]string{
		"empty":              "",
		"half":               `{"schema":`,
		"of another form":    `{"schema":"v2","audience":"windows","oldest":0,"revision":0,"digest":"","ended":false}`,
		"with unknown words": `{"schema":"pipeguard.dev/bundle-state/v2","audience":"windows","keys":[],"x":1}`,
		"of the form before": `{"schema":"pipeguard.dev/bundle-state/v1","audience":"windows","oldest":0,"revision":0,"digest":"","ended":false}`,
		"too long":           strings.Repeat(" ", maxState+1),
	} {
		n := newNode(t)
		offer(t, n.start(t), build(t, n.key), "")
		if err := os.WriteFile(disk{n.dir}.stateFile("windows"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := NewKeeper(t.Context(), n.options(t)); err == nil || !strings.Contains(err.Error(), "minimum revision") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatCannotBeKeptDoesNotDecide(t *testing.T) {
	n := newNode(t)
	k := n.start(t)
	offer(t, k, build(t, n.key), "")
	if err := os.RemoveAll(n.dir); err != nil {
		t.Fatal(err)
	}
	offer(t, k, build(t, n.key, revision(8)), ReasonStore)
	if n.decides.Load() != 7 || k.Status().Oldest != 7 {
		t.Errorf("revision %d decides", n.decides.Load())
	}
}

func TestNothingIsPermittedAfterTheEnd(t *testing.T) {
	n := newNode(t)
	k := n.start(t)
	offer(t, k, build(t, n.key), "")
	n.set(issued.Add(life - time.Second))
	if err := k.Valid(); err != nil {
		t.Error(err)
	}
	n.set(issued.Add(life))
	if ReasonOf(k.Valid()) != ReasonExpired || k.Status().Invalid != ReasonExpired {
		t.Errorf("at its end: %v", k.Valid())
	}
	n.set(issued.Add(time.Hour)) // the clock is set back
	if ReasonOf(k.Valid()) != ReasonExpired {
		t.Errorf("with the clock back: %v", k.Valid())
	}
	k.noteEnd()
	k = n.start(t)
	if ReasonOf(k.Valid()) != ReasonNone || k.Status().Refused.Reason != ReasonExpired {
		t.Errorf("after a start: %v", k.Valid())
	}
	offer(t, k, build(t, n.key), ReasonExpired)
	offer(t, k, build(t, n.key, revision(8)), "") // a newer one is the way out
	if k.Valid() != nil {
		t.Error(k.Valid())
	}
}

func TestAClockThatIsSetBackStopsABundleForThatTime(t *testing.T) {
	n := newNode(t)
	k := n.start(t)
	offer(t, k, build(t, n.key), "")
	n.set(issued.Add(-time.Hour))
	if ReasonOf(k.Valid()) != ReasonNotYet {
		t.Errorf("before it was issued: %v", k.Valid())
	}
	n.set(issued.Add(time.Hour))
	if err := k.Valid(); err != nil {
		t.Errorf("with the clock right again: %v", err)
	}
}

func TestABundleDoesNotOutliveItsTimeByAClockThatIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		var back time.Duration // how far the wall clock was set back; time.Now has what nobody sets as well
		o := n.options(t)
		o.Now = func() time.Time {
			if back == 0 {
				return time.Now()
			}
			now := time.Now()
			return now.Add(-back).Round(0) // a wall clock alone, earlier
		}
		k, err := NewKeeper(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		raw := build(t, n.key, func(b *Bundle) { b.IssuedAt, b.ExpiresAt = now, now.Add(time.Hour) })
		offer(t, k, raw, "")
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { _ = k.Run(ctx) })
		time.Sleep(time.Hour + watch)
		synctest.Wait()
		back = 30 * time.Minute
		if ReasonOf(k.Valid()) != ReasonExpired {
			t.Errorf("after its time: %v", k.Valid())
		}
		stop()
		group.Wait()
		if k.Status().Refused == nil || !k.seen.Keys[0].Ended {
			t.Error("the end was not noted")
		}
	})
}

func TestAnotherPoolBeginsAnew(t *testing.T) {
	n := newNode(t)
	offer(t, n.start(t), build(t, n.key), "")
	o := n.options(t)
	o.Audience = "linux"
	k, err := NewKeeper(t.Context(), o)
	if err != nil || k.Status().Oldest != 0 || ReasonOf(k.Valid()) != ReasonNone {
		t.Fatalf("%v, %+v", err, k.Status())
	}
	offer(t, k, build(t, n.key, revision(3), func(b *Bundle) { b.Audience = "linux" }), "")
}

func TestAPoolThatTheNodeComesBackToHasForgottenNoRevision(t *testing.T) {
	n := newNode(t)
	old := build(t, n.key, revision(7))
	offer(t, n.start(t), build(t, n.key, revision(20)), "")
	o := n.options(t)
	o.Audience = "linux"
	elsewhere, err := NewKeeper(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	offer(t, elsewhere, build(t, n.key, revision(3), func(b *Bundle) { b.Audience = "linux" }), "")
	back := n.start(t)
	if s := back.Status(); s.Oldest != 20 {
		t.Errorf("back in its pool: %+v", s)
	}
	offer(t, back, old, ReasonRollback)
}

func TestAKeeperNeedsAllItsParts(t *testing.T) {
	n := newNode(t)
	for name, change := range map[string]func(*Options){
		"no keys":      func(o *Options) { o.Keys = Keys{} },
		"no audience":  func(o *Options) { o.Audience = "" },
		"no directory": func(o *Options) { o.Dir = "" },
		"no tests":     func(o *Options) { o.Prepare = nil },
		"a file for a directory": func(o *Options) {
			o.Dir = filepath.Join(n.dir, "file")
			if err := os.WriteFile(o.Dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		o := n.options(t)
		change(&o)
		if _, err := NewKeeper(t.Context(), o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestAFileIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		k := n.start(t)
		file := filepath.Join(t.TempDir(), "bundle.tar.gz")
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { _ = k.Follow(ctx, file, time.Second) })
		expect := func(raw []byte, want uint64, reason Reason) {
			t.Helper()
			if err := os.WriteFile(file, raw, 0o600); err != nil {
				t.Error(err)
			}
			time.Sleep(1500 * time.Millisecond)
			synctest.Wait()
			s := k.Status()
			if n.decides.Load() != want || (s.Refused == nil) != (reason == "") || s.Refused != nil && s.Refused.Reason != reason {
				t.Errorf("revision %d decides; refused %+v, want %q", n.decides.Load(), s.Refused, reason)
			}
		}
		time.Sleep(5 * time.Second) // there is no file yet
		expect(build(t, n.key), 7, "")
		expect(build(t, n.key, revision(6)), 7, ReasonRollback)
		expect(make([]byte, MaxCompressed+1), 7, ReasonSize)
		expect(build(t, n.key, revision(8)), 8, "")
		stop()
		group.Wait()
	})
}

func BenchmarkValid(b *testing.B) {
	key := newTestKey(b)
	keys := pin(b, key)
	now := issued.Add(time.Hour)
	k, err := NewKeeper(b.Context(), Options{
		Keys: keys, Audience: "windows", Dir: b.TempDir(), Now: func() time.Time { return now },
		Prepare: func(context.Context, Bundle, Seal) (func(), error) { return func() {}, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := k.Offer(b.Context(), build(b, key)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := k.Valid(); err != nil {
			b.Fatal(err)
		}
	}
}
