package audit

import (
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

func TestACallerComesBackFromItsRecord(t *testing.T) {
	all := caller.Caller{
		Assurance: caller.AssurancePod, Token: true, IsHost: true, Doubt: "d",
		Process: caller.Process{PID: 1, Start: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Exe: "x"}, User: caller.User{SID: "s", Name: "n"},
		Pod:       caller.Pod{Namespace: "a", Name: "b", UID: "c", ServiceAccount: "d"},
		Container: caller.Container{ID: "e", Name: "f", Image: "g", HostProcess: true},
	}
	for _, c := range []caller.Caller{{}, all, {Assurance: "none"}, {Pod: all.Pod}, {Container: all.Container}, {User: all.User, Process: caller.Process{Exe: "x"}}} {
		w := WhoOf(c)
		if got := w.Caller(); got != c {
			t.Errorf("%+v is %+v", c, got)
		}
		if (w.Pod == nil) != (c.Pod == caller.Pod{}) || (w.Container == nil) != (c.Container == caller.Container{}) || (w.User == nil) != (c.User == caller.User{}) {
			t.Errorf("%+v: what is not known is named: %+v", c, w)
		}
	}
	if got := (*Who)(nil).Caller(); got != (caller.Caller{}) {
		t.Errorf("nobody is %+v", got)
	}
}
