package token

import (
	"context"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

func TestRunTakesNewKeysAndReportsAnUnfitFileOnce(t *testing.T) {
	dir := t.TempDir()
	file := dir + "/jwks.json"
	first, second := clusterKeys(t), document(t, rsaJWK("rsa-2", &strangerRSA().PublicKey))
	synctest.Test(t, func(t *testing.T) {
		writeFile(t, file, first)
		var mu sync.Mutex // guards reports
		var reports []error
		v, err := New(Config{Method: ByKeys, Audience: ourAudience, Node: ourNode, Issuer: ourIssuer, Keys: file},
			Metrics{Reloaded: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				reports = append(reports, err)
			}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- v.Run(ctx) }()
		expect := func(what string, n int, isError bool) {
			t.Helper()
			time.Sleep(3*reread + 1)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(reports) != n || n > 0 && (reports[n-1] != nil) != isError {
				t.Errorf("%s: got the reports %v", what, reports)
			}
		}
		expect("an unchanged file", 0, false)
		writeFile(t, file, second)
		expect("a new key", 1, false)
		writeFile(t, file, []byte("{"))
		expect("a broken file", 2, true)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		expect("no file", 3, true)
		if v.keys.Load().byID["rsa-2"] == nil {
			t.Error("the last good keys are gone")
		}
		writeFile(t, file, second)
		expect("the same file again", 4, false)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestMetricsTellEveryCallOnce(t *testing.T) {
	c, a := newClock(), startAPI(t)
	seen := map[string]int{}
	v, err := New(a.config(t), Metrics{
		Checked:    func(pipe, outcome string) { seen["checked "+pipe+" "+outcome]++ },
		Authorized: func(pipe, outcome string) { seen["authorized "+pipe+" "+outcome]++ },
		Asked:      func(kind, outcome string, _ time.Duration) { seen["asked "+kind+" "+outcome]++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	v.withClock(c)
	own := bearer(sign(t, rsaHeader(), claimsAt(c.Now()), clusterRSA()))
	wantDriver(t, guard(t, v, Required), own, driver())
	wantDriver(t, guard(t, v, Required), own, driver())
	wantRefusal(t, guard(t, v, Required), nil, driver(), Missing)
	_, _, _ = guard(t, v, IfPresent).Check(t.Context(), nil, driver())
	_, _, _ = guard(t, v, IfPresent).Check(t.Context(), own, Facts{})
	_, _, _ = guard(t, v, Off).Check(t.Context(), own, driver())
	wantForbidden(t, v, driverIdentity(c), "disk-v1", "X", driver(), Forbidden)
	c.pass(3 * time.Minute)
	a.answers(away)
	wantDriver(t, guard(t, v, Required), own, driver())
	for what, n := range map[string]int{
		"checked disk-v1 ok": 2, "checked disk-v1 missing": 1, "checked disk-v1 absent": 1, "checked disk-v1 ignored": 1,
		"checked disk-v1 stale": 1, "authorized disk-v1 forbidden": 1, "asked TokenReview ok": 1, "asked TokenReview unavailable": 1,
		"asked SubjectAccessReview forbidden": 2,
	} {
		if seen[what] != n {
			t.Errorf("%s: %d times, want %d", what, seen[what], n)
		}
		delete(seen, what)
	}
	if len(seen) > 0 {
		t.Errorf("besides: %v", seen)
	}
}

func TestAPanicLocksNobodyOut(t *testing.T) {
	m := newMemo[int](Config{AllowFor: time.Minute, DenyFor: time.Minute, StaleFor: time.Minute, Timeout: time.Minute}, true)
	q := question[int]{expires: time.Now().Add(time.Hour), ask: func(context.Context) (int, *Refusal) { panic("a fault") }}
	func() {
		defer func() { _ = recover() }()
		_, _ = m.find(t.Context(), q)
	}()
	q.ask = func(context.Context) (int, *Refusal) { return 7, nil }
	if f, r := m.find(t.Context(), q); r != nil || f.value != 7 || m.open != 0 {
		t.Errorf("got %+v, %v", f, r)
	}
}

func TestCodesSayWhatToDo(t *testing.T) {
	for reason, want := range map[Reason]codes.Code{
		Missing: codes.Unauthenticated, WrongPod: codes.Unauthenticated, Ended: codes.Unauthenticated, Rejected: codes.Unauthenticated,
		Unavailable: codes.Unavailable, Busy: codes.Unavailable, Forbidden: codes.PermissionDenied,
	} {
		if got := CodeOf(refuse(reason, "x")); got != want {
			t.Errorf("%s: got %s, want %s", reason, got, want)
		}
	}
}

func TestStripTakesTheTokenOutOfWhatIsPassedOn(t *testing.T) {
	v, _ := offline(t, newClock())
	md := metadata.Pairs("authorization", "Bearer x", "authorization", "y", "trace", "1")
	for mode, want := range map[Mode]int{Off: 2, IfPresent: 0, Required: 0} {
		got := guard(t, v, mode).Strip(md)
		if len(got.Get("authorization")) != want || len(got.Get("trace")) != 1 {
			t.Errorf("%s: got %v", mode, got)
		}
	}
	if len(md.Get("authorization")) != 2 {
		t.Error("the caller's metadata was changed")
	}
	if got := (Guard{}).Strip(md); len(got.Get("authorization")) != 0 {
		t.Error("the zero guard passes the token on")
	}
}
