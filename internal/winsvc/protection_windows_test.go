package winsvc

import (
	"os"
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
