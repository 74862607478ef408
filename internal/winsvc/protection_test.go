package winsvc

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kernel is a Windows that knows some mitigations.
type kernel struct {
	flags   map[uint32]uint32
	knows   map[uint32]bool
	refuses map[uint32]bool // although it knows them
	ignores map[uint32]bool // and says that all went well
}

func (k kernel) set(policy, flags uint32) error {
	switch {
	case !k.knows[policy]:
		return errors.New("not known")
	case k.refuses[policy]:
		return errors.New("not for oneself")
	case !k.ignores[policy]:
		k.flags[policy] = flags
	}
	return nil
}

func (k kernel) get(policy uint32) (uint32, error) {
	if !k.knows[policy] {
		return 0, errors.New("not known")
	}
	return k.flags[policy], nil
}

func TestEveryProtectionIsTriedAndReportedAsItTurnedOut(t *testing.T) {
	const child, redirection = 13, 16
	both := map[uint32]bool{child: true, redirection: true}
	for name, tt := range map[string]struct {
		kernel kernel
		want   []Protection
	}{
		"a Windows of now": {kernel{knows: both}, []Protection{{"no child processes", true, ""}, {"redirection trust", true, ""}}},
		"one without either": {kernel{}, []Protection{
			{"no child processes", false, "Windows refused it: not known"}, {"redirection trust", false, "Windows refused it: not known"}}},
		"one with the second alone": {kernel{knows: map[uint32]bool{redirection: true}}, []Protection{
			{"no child processes", false, "Windows refused it: not known"}, {"redirection trust", true, ""}}},
		"one that lets no process set the first for itself": {kernel{knows: both, refuses: map[uint32]bool{child: true}}, []Protection{
			{"no child processes", false, "Windows refused it: not for oneself"}, {"redirection trust", true, ""}}},
		"one that takes the second and does nothing": {kernel{knows: both, ignores: map[uint32]bool{redirection: true}}, []Protection{
			{"no child processes", true, ""}, {"redirection trust", false, "Windows accepted it and does not apply it"}}},
		"one in which the first is on already": {kernel{knows: both, refuses: map[uint32]bool{child: true}, flags: map[uint32]uint32{child: 1}}, []Protection{
			{"no child processes", true, ""}, {"redirection trust", true, ""}}},
	} {
		if tt.kernel.flags == nil {
			tt.kernel.flags = map[uint32]uint32{}
		}
		if diff := cmp.Diff(tt.want, harden(tt.kernel.set, tt.kernel.get)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestAnotherProcessIsAskedAndNotChanged(t *testing.T) {
	got := protections(func(policy uint32) (uint32, error) {
		if policy == 16 {
			return 0, errors.New("access denied")
		}
		return 1 | 2, nil // the audit flag as well
	})
	want := []Protection{{"no child processes", true, ""}, {"redirection trust", false, "Windows does not say: access denied"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
