package winsvc

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

func TestAProcessSaysWhichPrivilegesItHolds(t *testing.T) {
	power, err := ProcessPower(uint32(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(power.Privileges, "SeChangeNotifyPrivilege") || !slices.IsSorted(power.Privileges) {
		t.Errorf("privileges %q", power.Privileges)
	}
	if len(power.Protections) != len(mitigations) {
		t.Errorf("protections %+v", power.Protections)
	}
	t.Logf("%+v", power)
}

func TestAListOfPrivilegesIsReadAsItWasWritten(t *testing.T) {
	for _, want := range [][]string{nil, {"SeDebugPrivilege"}, {"SeDebugPrivilege", "SeLoadDriverPrivilege"}} {
		text, err := multiString(want)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(text); n < 2 || text[n-1] != 0 || text[n-2] != 0 {
			t.Errorf("%q does not end with two NULs", want)
		}
		if diff := cmp.Diff(want, splitMultiString(&text[0])); diff != "" {
			t.Error(diff)
		}
	}
	if splitMultiString(nil) != nil {
		t.Error("no list is not an empty one")
	}
	if _, err := multiString([]string{"a\x00b"}); err == nil {
		t.Error("a text with a NUL is accepted")
	}
	if size := unsafe.Sizeof(serviceSIDInfo{}); size != 4 {
		t.Errorf("SERVICE_SID_INFO has %d bytes", size)
	}
}

// It cannot be undone: no other test of this package starts a process on Windows.
func TestAHardenedProcessIsWhatItSays(t *testing.T) {
	got := Harden()
	power, err := ProcessPower(uint32(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(mitigations) || len(power.Protections) != len(got) {
		t.Fatalf("%+v, and later %+v", got, power.Protections)
	}
	for i, p := range got {
		if p.On != power.Protections[i].On || p.Name != power.Protections[i].Name {
			t.Errorf("it said %+v, and is %+v", p, power.Protections[i])
		}
		t.Logf("%+v", p)
	}
	if err := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$").Run(); got[0].On && err == nil {
		t.Error("a process that may start no other has started one")
	}
}
