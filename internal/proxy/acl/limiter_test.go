package acl

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

func TestLimiterRefusesCallsBeyondTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, limits := NewLimiter(0), access.Limits{CallsPerSecond: 2, Burst: 3}
		driver, other := caller.Principal{PodUID: "u1", Container: "c"}, caller.Principal{PodUID: "u1", Container: "sidecar"}
		count := func(who caller.Principal, rule string) (n int) {
			for range 10 {
				if l.Call(who, rule, limits) {
					n++
				}
			}
			return n
		}
		if n := count(driver, "r"); n != 3 {
			t.Errorf("%d calls of 10 at once, want the burst of 3", n)
		}
		if n := count(other, "r"); n != 3 {
			t.Errorf("another container of the pod: %d", n)
		}
		if n := count(driver, "s"); n != 3 {
			t.Errorf("another rule: %d", n)
		}
		time.Sleep(500 * time.Millisecond)
		if n := count(driver, "r"); n != 1 {
			t.Errorf("after half a second %d, want 1", n)
		}
		time.Sleep(time.Hour)
		if n := count(driver, "r"); n != 3 {
			t.Errorf("after an hour %d, want no more than the burst", n)
		}
	})
}

func TestLimiterFollowsChangedLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(0)
		for range 50 {
			l.Call(caller.Principal{Exe: "1"}, "r", access.Limits{CallsPerSecond: 100})
		}
		if !l.Call(caller.Principal{Exe: "1"}, "r", access.Limits{CallsPerSecond: 1}) || l.Call(caller.Principal{Exe: "1"}, "r", access.Limits{CallsPerSecond: 1}) {
			t.Error("a lower limit leaves the calls of the higher one")
		}
		if !l.Call(caller.Principal{Exe: "1"}, "r", access.Limits{}) {
			t.Error("no limit refuses")
		}
	})
}

func TestLimiterTellsProgramsOfOneAccountApart(t *testing.T) {
	l, limits := NewLimiter(0), access.Limits{CallsPerSecond: 1}
	if !l.Call(caller.Principal{User: "S-1-5-18", Exe: "a"}, "", limits) || !l.Call(caller.Principal{User: "S-1-5-18", Exe: "b"}, "", limits) || l.Call(caller.Principal{User: "S-1-5-18", Exe: "a"}, "", limits) {
		t.Error("two programs of one account share a bound, or one has it twice")
	}
}

func TestLimiterStaysBoundedAgainstManyPrincipals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, limits := NewLimiter(100), access.Limits{CallsPerSecond: 1, Burst: 2}
		old := caller.Principal{PodUID: "old"}
		l.Call(old, "r", limits)
		passed := 0
		for i := range 10_000 {
			if l.Call(caller.Principal{Exe: strconv.Itoa(i + 1)}, "r", limits) {
				passed++
			}
		}
		if len(l.buckets) > 100 || len(l.shared) != 1 {
			t.Errorf("%d principals and %d shared bounds", len(l.buckets), len(l.shared))
		}
		if passed != 99+2 {
			t.Errorf("%d calls passed, want one of each of 99 and two of all others together", passed)
		}
		if !l.Call(old, "r", limits) {
			t.Error("one that was there before is refused")
		}
		time.Sleep(3 * time.Second)
		if !l.Call(caller.Principal{Exe: "99999"}, "r", limits) || len(l.buckets) != 1 || len(l.shared) != 0 {
			t.Errorf("after a pause there are still %d principals, %d shared", len(l.buckets), len(l.shared))
		}
	})
}

func TestLimiterRefusesConnectionsBeyondTheNumber(t *testing.T) {
	l, who := NewLimiter(0), caller.Principal{PodUID: "u"}
	var mu sync.Mutex
	var releases []func()
	var wait sync.WaitGroup
	for range 1000 {
		wait.Go(func() {
			if release, ok := l.Connect(who, "disk-v1", 4); ok {
				mu.Lock()
				releases = append(releases, release)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if len(releases) != 4 {
		t.Fatalf("%d of 1000 connections, want 4", len(releases))
	}
	if _, ok := l.Connect(who, "disk-v1beta2", 4); !ok {
		t.Error("another pipe is refused")
	}
	releases[0]()
	releases[0]()
	if _, ok := l.Connect(who, "disk-v1", 4); !ok {
		t.Error("a connection that was closed still counts")
	}
	if _, ok := l.Connect(who, "disk-v1", 4); ok {
		t.Error("a connection that was closed twice counts twice")
	}
}
