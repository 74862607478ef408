package caller

import (
	"strings"
	"testing"
)

func TestWhatIsNotProvenHasNoLevel(t *testing.T) {
	order := []Assurance{AssuranceNone, AssuranceSID, AssuranceProcess, AssurancePod}
	for i, a := range order {
		if a.Level() != i {
			t.Errorf("%q is step %d, want %d", a, a.Level(), i)
		}
	}
	for _, a := range []Assurance{"", "Pod", "pod ", "apiserver", AssuranceDeclared} {
		if a.Level() != LevelNone {
			t.Errorf("%q is step %d", a, a.Level())
		}
	}
}

func TestPrincipalsAreContainersOrProgramsOfAnAccount(t *testing.T) {
	pod := Caller{Assurance: AssurancePod, User: User{SID: "S-1-5-18"}, Process: Process{PID: 1, Exe: `C:\a.exe`}, Pod: Pod{UID: "u", Namespace: "n"}, Container: Container{ID: "c"}}
	host := Caller{Assurance: AssuranceProcess, User: pod.User, Process: pod.Process}
	other, again, renamed := pod, pod, host
	other.Container.ID, again.Process, renamed.Process.Exe = "d", Process{PID: 2, Exe: `C:\b.exe`}, `c:\A.EXE`
	switch {
	case pod.Principal() != Principal{PodUID: "u", Container: "c", Namespace: "n"}, pod.Principal() != again.Principal():
		t.Errorf("%+v and %+v of one container", pod.Principal(), again.Principal())
	case pod.Principal() == other.Principal(), pod.Principal() == host.Principal():
		t.Error("two parties are one")
	case host.Principal() != renamed.Principal():
		t.Error("one program is two parties")
	}
	long := strings.Repeat("a", 10_000)
	a, b := Caller{Process: Process{Exe: long + "1"}}, Caller{Process: Process{Exe: long + "2"}}
	if x, y := a.Principal(), b.Principal(); x == y || len(x.Exe) > 1000 {
		t.Errorf("long paths: %d bytes, equal: %t", len(x.Exe), x == y)
	}
}

func TestNothingIsKnownOfAPodThatIsNot(t *testing.T) {
	for _, c := range []Caller{{Pod: Pod{Name: "x"}}, {Container: Container{ID: "x"}}, {Container: Container{HostProcess: true}}, Declared(Pod{Namespace: "n"}, Container{})} {
		if !c.HasPod() {
			t.Errorf("%+v has none", c)
		}
	}
	if c := (Caller{Assurance: AssurancePod, Token: true, Doubt: "x", Process: Process{PID: 1}}); c.HasPod() {
		t.Errorf("%+v has one", c)
	}
}
