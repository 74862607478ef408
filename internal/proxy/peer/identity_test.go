package peer

import (
	"reflect"
	"testing"
)

func exportAll(reflect.Type) bool { return true }

func TestAtLeastComparesWhatWasProven(t *testing.T) {
	order := []Assurance{AssuranceNone, AssuranceSID, AssuranceProcess, AssurancePod}
	for i, has := range order {
		for j, least := range order {
			if got := has.AtLeast(least); got != (i >= j) {
				t.Errorf("%q at least %q: %t", has, least, got)
			}
		}
	}
	for _, unknown := range []Assurance{"", "Pod", "pod ", "apiserver"} {
		for _, known := range order {
			if known.AtLeast(unknown) {
				t.Errorf("%q reaches %q, of which nobody has heard", known, unknown)
			}
			if unknown.AtLeast(known) != (known == AssuranceNone) {
				t.Errorf("%q reaches %q", unknown, known)
			}
		}
	}
}

func TestPrincipalSaysWhatWasProven(t *testing.T) {
	pod := of("a")
	process := Identity{Assurance: AssuranceProcess, User: User{SID: "S-1-5-18"}, Process: Process{Exe: `C:\x.exe`}}
	host, inPod, half, sid := process, process, process, process
	host.IsHost = true
	inPod.Assurance, inPod.Container, inPod.Pod = AssurancePod, &pod.Container, &pod.Pod
	half.Assurance, half.Pod = AssurancePod, &pod.Pod
	sid.Assurance = AssuranceSID
	for _, test := range []struct {
		name string
		who  Identity
		want string
	}{
		{"a pod", inPod, "pod:storage/csi-a/driver"},
		{"a process of the host", host, `host:S-1-5-18:C:\x.exe`},
		{"a process of which nobody knows where it is", process, `process:S-1-5-18:C:\x.exe`},
		{"half a pod", half, ""},
		{"an account", sid, ""},
		{"a host with nothing proven", Identity{IsHost: true}, ""},
		{"nobody", Identity{}, ""},
	} {
		if got := test.who.Principal(); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
