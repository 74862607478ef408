package certs

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestYearsOfRotationMissNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		defer lead(t, m.connect(), func(o *Options) { o.Interval, o.Leaf = 12*time.Hour, 60*day })()
		settle()
		watchWrites(t, m)
		authorities, leaves := map[string]bool{}, map[string]bool{}
		for range 3 * 365 / 5 {
			pass(t, m, 5*day, day)
			s, faults := parse(m.content(), names.hosts(), time.Now())
			if len(faults) > 0 || s.current == nil || s.leaf == nil {
				t.Fatalf("%+v: %v", s, faults)
			}
			authorities[s.current.certificate.SerialNumber.String()] = true
			leaves[s.leaf.Leaf.SerialNumber.String()] = true
		}
		if n := len(authorities); n < 4 || n > 6 {
			t.Errorf("%d authorities in three years, want one in eight months", n)
		}
		if n := len(leaves); n < 26 || n > 36 {
			t.Errorf("%d certificates in three years, want one in forty days", n)
		}
	})
}

func TestALeaderMayDieAtAnyWriteOfTheFirstInstallation(t *testing.T) {
	for n := 1; n <= 3; n++ {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			ctx, die := context.WithCancel(t.Context())
			m.onWrite = func(written int) {
				if written == n {
					die() // before it hears that the write took effect
				}
			}
			stop := leadWith(ctx, t, m.connect(), weeks)
			settle()
			stop()
			if got := m.written(); got != n {
				t.Fatalf("%d writes, want %d", got, n)
			}
			defer lead(t, m.connect(), weeks)()
			settle()
			watchWrites(t, m)
			pass(t, m, 7*day, 12*time.Hour)
			expectSettled(t, m)
		})
	}
}

func TestALeaderMayDieAtAnyWriteOfAHandOver(t *testing.T) {
	for _, lost := range []bool{false, true} { // whether the write does not take effect either
		for n := 1; n <= 7; n++ { // the next stored, in two bundles; signing; the previous gone, from two bundles
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				stop := lead(t, m.connect(), weeks)
				settle()
				pass(t, m, 27*day, day) // the hand-over begins after 28
				stop()

				ctx, die := context.WithCancel(t.Context())
				s, base := m.connect(), m.written()
				watchWrites(t, m)
				seen := m.onWrite
				m.onWrite = func(written int) {
					seen(written)
					if written-base == n && !lost {
						die()
					}
				}
				s.fail(func(call string) error {
					if lost && strings.HasPrefix(call, "write ") && m.written()-base == n-1 {
						die()
					}
					return ctx.Err()
				})
				stop = leadWith(ctx, t, s, weeks)
				pass(t, m, 2*day, 15*time.Minute)
				if ctx.Err() == nil {
					t.Errorf("there is no write %d", n)
				}
				stop()
				defer lead(t, m.connect(), weeks)()
				pass(t, m, 3*time.Hour, 5*time.Minute)
				expectSettled(t, m)
			})
		}
	}
}

func TestTwoLeadersDoNoHarm(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			m := newMemory()
			for range 2 {
				s := m.connect()
				own := rand.New(rand.NewPCG(seed, random.Uint64()))
				s.latency = func() time.Duration {
					if own.IntN(10) == 0 {
						return time.Duration(own.Int64N(int64(10 * time.Minute))) // it hangs
					}
					return time.Duration(own.Int64N(int64(2 * time.Second)))
				}
				defer lead(t, s, weeks)()
			}
			time.Sleep(3 * time.Hour)
			synctest.Wait()
			watchWrites(t, m)
			pass(t, m, 60*day, 6*time.Hour)
			if s, _ := parse(m.content(), names.hosts(), time.Now()); s.current == nil || s.current.certificate.NotBefore.Before(time.Now().Add(-32*day)) {
				t.Error("the authority was never replaced")
			}
		})
	}
}

func TestABundleThatWasTouchedDuringAHandOverDelaysIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		stop := lead(t, m.connect(), weeks)
		settle()
		pass(t, m, 27*day, day)
		stop()
		time.Sleep(day) // now it is due
		watchWrites(t, m)
		before := m.configuration(names.Configurations[0])
		defer lead(t, m.connect(), weeks)()
		synctest.Wait()
		after := m.configuration(names.Configurations[0])
		if cmp.Equal(before, after) {
			t.Fatal("there is no hand-over")
		}
		time.Sleep(100 * time.Second)
		m.setConfiguration(before)
		m.setConfiguration(after) // before the leader could look
		pass(t, m, 3*time.Hour, 10*time.Minute)
		expectSettled(t, m)
	})
}

func TestALeaderWhoWasHeldUpDoesNotCountThatTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		stop := lead(t, m.connect(), weeks)
		settle()
		pass(t, m, 27*day, day)
		stop()
		time.Sleep(day) // now it is due
		watchWrites(t, m)
		held := m.connect()
		calls := 0
		held.latency = func() time.Duration {
			if calls++; calls == 1 {
				return 10 * time.Minute // to hear of the first configuration
			}
			return 0
		}
		defer lead(t, held, weeks)()
		time.Sleep(10*time.Minute - time.Second)
		stop = lead(t, m.connect(), weeks) // another makes the next authority known
		synctest.Wait()
		stop()
		if m.content()[keyNext] == nil {
			t.Fatal("there is no hand-over")
		}
		time.Sleep(5 * time.Second)
		data := m.content()
		data["somebody's"] = []byte("entry")
		m.setSecret(data) // wakes the first
		pass(t, m, 3*time.Hour, 10*time.Minute)
		expectSettled(t, m)
	})
}

func TestALeaderWhoWasHeldUpTakesNothingBack(t *testing.T) {
	for call := 1; call <= 3; call++ { // two configurations and the Secret are read
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			stop := lead(t, m.connect(), weeks)
			settle()
			stop()
			watchWrites(t, m)
			held := m.connect()
			calls := 0
			held.latency = func() time.Duration {
				if calls++; calls == call {
					return 10 * time.Minute
				}
				return 0
			}
			defer lead(t, held, weeks)()
			time.Sleep(time.Minute)
			m.setSecret(nil) // so that another leader introduces another authority
			defer lead(t, m.connect(), weeks)()
			pass(t, m, 3*time.Hour, time.Minute)
			expectSettled(t, m)
		})
	}
}

func TestThisTestSeesRequestsThatAreMissed(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"signing before API servers know the authority":     func(o *Options) { o.Grace = time.Minute },
		"retiring an authority whose certificate is served": func(o *Options) { o.Keep = 20 * time.Minute },
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			stop := lead(t, m.connect(), weeks)
			settle()
			pass(t, m, 27*day, day) // the hand-over begins after 28
			stop()
			defer lead(t, m.connect(), func(o *Options) { weeks(o); change(o) })()
			missed := false
			m.mu.Lock()
			m.onWrite = func(int) { missed = missed || m.misses(slow, lag) != nil }
			m.mu.Unlock()
			time.Sleep(2 * day)
			synctest.Wait()
			if !missed {
				t.Errorf("%s: not seen", name)
			}
		})
	}
}
