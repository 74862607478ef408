package token

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

const driverUser = "system:serviceaccount:storage:driver"

func driverIdentity(c *clock) Identity {
	return Identity{
		Namespace: "storage", ServiceAccount: "driver", PodName: "driver-x7", PodUID: "pod-1", Node: ourNode, Expires: c.Now().Add(time.Hour),
	}
}

func (a *apiServer) grant(role string, allowed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.roles[role] = allowed
}

func wantForbidden(t *testing.T, v *Verifier, id Identity, pipe, method string, caller Facts, reason Reason) {
	t.Helper()
	if got, err := v.Authorize(t.Context(), id, pipe, method, caller); err == nil || ReasonOf(err) != reason || got != (Access{}) {
		t.Errorf("got %+v, %v, want a refusal for %q", got, err, reason)
	}
}

func wantAccess(t *testing.T, v *Verifier, id Identity, pipe, method string) Access {
	t.Helper()
	got, err := v.Authorize(t.Context(), id, pipe, method, driver())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAccessFollowsTheClustersRoles(t *testing.T) {
	c, a := newClock(), startAPI(t)
	v, id := online(t, c, a), driverIdentity(c)
	wantForbidden(t, v, id, "disk-v1", "ListDiskLocations", driver(), Forbidden)
	a.grant(driverUser+" disk-v1 ListDiskLocations", true)
	wantForbidden(t, v, id, "disk-v1", "ListDiskLocations", driver(), Forbidden) // for ten seconds
	c.pass(10 * time.Second)
	if got := wantAccess(t, v, id, "disk-v1", "ListDiskLocations"); got.Verb != "ListDiskLocations" || got.Cached {
		t.Errorf("got %+v", got)
	}
	if got := wantAccess(t, v, id, "disk-v1", "ListDiskLocations"); !got.Cached {
		t.Errorf("got %+v, want a remembered answer", got)
	}
	wantForbidden(t, v, id, "disk-v1", "PartitionDisk", driver(), Forbidden)
	wantForbidden(t, v, id, "volume-v1", "ListDiskLocations", driver(), Forbidden)
	a.grant(driverUser+" volume-v1 connect", true)
	c.pass(10 * time.Second)
	for _, method := range []string{"FormatVolume", "MountVolume"} {
		if got := wantAccess(t, v, id, "volume-v1", method); got.Verb != VerbConnect {
			t.Errorf("got %+v", got)
		}
	}
	a.grant(driverUser+" disk-v1 ListDiskLocations", false)
	c.pass(2 * time.Minute)
	wantForbidden(t, v, id, "disk-v1", "ListDiskLocations", driver(), Forbidden)

	want := accessReview{APIVersion: accessReviewAPI, Kind: accessReviewKind, Spec: accessSpec{
		User: driverUser, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:storage", "system:authenticated"},
		Extra:              map[string][]string{extraPodName: {"driver-x7"}, extraPodUID: {"pod-1"}, extraNode: {ourNode}},
		ResourceAttributes: attributes{"pipeguard.dev", "pipes", "disk-v1", "connect"},
	}}
	if diff := cmp.Diff(want, a.access[0]); diff != "" {
		t.Errorf("the first question (-want +got):\n%s", diff)
	}
}

func TestAccessRefuses(t *testing.T) {
	c, a := newClock(), startAPI(t)
	a.grant(driverUser+" disk-v1 connect", true)
	v, id := online(t, c, a), driverIdentity(c)
	thief := driver()
	thief.Pod.UID = "pod-2"
	keysOnly, _ := offline(t, c)
	wantForbidden(t, v, Identity{}, "disk-v1", "X", driver(), Unbound)
	wantForbidden(t, v, id, "disk-v1", "X", Facts{}, Unbound)
	wantForbidden(t, v, id, "disk-v1", "X", Facts{Caller: caller.Caller{Process: caller.Process{PID: 1}}}, Unbound)
	wantForbidden(t, v, id, "disk-v1", "X", thief, WrongPod)
	wantForbidden(t, v, id, "", "X", driver(), Forbidden)
	wantForbidden(t, v, id, "disk-v1", "", driver(), Forbidden)
	wantForbidden(t, keysOnly, id, "disk-v1", "X", driver(), Unconfigured)
	colon := id
	colon.Namespace, colon.ServiceAccount = "storage:driver", "x"
	wantForbidden(t, v, colon, "disk-v1", "X", Facts{Caller: caller.Caller{Process: caller.Process{PID: 1}, Pod: caller.Pod{UID: "pod-1"}}}, Unbound)
	ended := driver()
	ended.Alive = func() error { return errors.New("ended") }
	wantForbidden(t, v, id, "disk-v1", "X", ended, Ended)
	wantAccess(t, v, id, "disk-v1", "X")
}

func TestAccessRefusesAnswersThatDoNotFit(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request, []byte)
		reason Reason
	}{
		{"allowed and denied", says(func(_, s fields) { s["denied"] = true }), Forbidden},
		{"not allowed", says(func(_, s fields) { s["allowed"] = false }), Forbidden},
		{"no status", says(func(r, _ fields) { delete(r, "status") }), Forbidden},
		{"allowed in capitals", says(func(_, s fields) { delete(s, "allowed"); s["Allowed"] = true }), Forbidden},
		{"allowed in text", says(func(_, s fields) { s["allowed"] = "true" }), Unavailable},
		{"another kind", says(func(r, _ fields) { r["kind"] = "TokenReview" }), Unavailable},
		{"away", away, Unavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, a := newClock(), startAPI(t)
			a.grant(driverUser+" disk-v1 connect", true)
			a.answers(tt.answer)
			wantForbidden(t, online(t, c, a), driverIdentity(c), "disk-v1", "X", driver(), tt.reason)
		})
	}
}

func TestAccessGoesStaleAndEnds(t *testing.T) {
	c, a := newClock(), startAPI(t)
	a.grant(driverUser+" disk-v1 X", true)
	v, id := online(t, c, a), driverIdentity(c)
	wantAccess(t, v, id, "disk-v1", "X")
	a.answers(away)
	c.pass(2 * time.Minute)
	// Whether "connect" is allowed by now cannot be asked, but what the method allowed stands in.
	if got := wantAccess(t, v, id, "disk-v1", "X"); !got.Stale || got.Verb != "X" {
		t.Errorf("got %+v, want a stale answer", got)
	}
	wantForbidden(t, v, id, "disk-v1", "Y", driver(), Unavailable)
	other := driver()
	other.Process.PID = 9
	wantForbidden(t, v, id, "disk-v1", "X", other, Unavailable)
	c.pass(8 * time.Minute)
	wantForbidden(t, v, id, "disk-v1", "X", driver(), Unavailable)
	id.Expires = c.Now().Add(-10 * time.Second)
	a.answers(nil)
	wantForbidden(t, v, id, "disk-v1", "X", driver(), WrongTime)
}

func TestAccessOfCallersWithoutATokenNeedsTheirServiceAccount(t *testing.T) {
	c, a := newClock(), startAPI(t)
	a.grant(driverUser+" disk-v1 connect", true)
	v := online(t, c, a)
	wantAccess(t, v, v.Resolved(driver()), "disk-v1", "X")
	for _, forget := range []func(*Facts){
		func(f *Facts) { f.Pod.UID = "" },
		func(f *Facts) { f.Pod.Namespace = "" },
		func(f *Facts) { f.Pod.Name = "" },
		func(f *Facts) { f.Pod.ServiceAccount = "" },
	} {
		f := driver()
		forget(&f)
		if id := v.Resolved(f); id != (Identity{}) {
			t.Errorf("got %+v of %+v", id, f)
		}
		wantForbidden(t, v, v.Resolved(f), "disk-v1", "X", f, Unbound)
	}
}
