package wmi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// These tests ask the WMI of the machine they run on. Wine's has the classes of root\cimv2 and StdRegProv, by and large;
// of root\Microsoft\Windows it has nothing, so no test here says how the storage, SMB and iSCSI classes answer.
// It also returns no rows for a class that there is not, knows no path of a row whose key was not selected (__PATH is not enough),
// follows associations from relative paths alone, and has other types for a few parameters.

func open(t *testing.T, o Options) *Pool {
	t.Helper()
	p, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func one(t *testing.T, p *Pool, q Query) Instance {
	t.Helper()
	found, err := p.Query(t.Context(), q)
	if err != nil || len(found) != 1 {
		t.Fatalf("%d instances, %v", len(found), err)
	}
	return found[0]
}

// itself selects the process that asks.
func itself() Query {
	return Query{Namespace: CIMv2, Class: "Win32_Process", Where: []Equal{{"ProcessId", os.Getpid()}}}
}

func TestQueryReadsEveryProperty(t *testing.T) {
	system := one(t, open(t, Options{}), Query{Namespace: CIMv2, Class: "Win32_OperatingSystem"})
	if text, err := system.Text("Caption"); err != nil || !strings.Contains(text, "Windows") {
		t.Error(text, err)
	}
	if primary, err := system.Bool("Primary"); err != nil || !primary {
		t.Error(primary, err)
	}
	if kind, err := system.Uint("OSType"); err != nil || kind != 18 { // a uint16: Windows NT
		t.Error(kind, err)
	}
	if _, isText := system.Properties["FreePhysicalMemory"].(string); !isText {
		t.Errorf("a number of 64 bits came as %T", system.Properties["FreePhysicalMemory"])
	}
	if free, err := system.Uint("FreePhysicalMemory"); err != nil || free == 0 {
		t.Error(free, err)
	}
	if !strings.Contains(strings.ToLower(system.Path), `root\cimv2:win32_operatingsystem`) || strings.Contains(system.Path, "\x00") {
		t.Errorf("%q", system.Path)
	}
}

func TestQueryReadsWhatIsSelected(t *testing.T) {
	p := open(t, Options{})
	bios := one(t, p, Query{Namespace: CIMv2, Class: "Win32_BIOS", Select: []string{"SerialNumber", "Name"}})
	if _, err := bios.Text("SerialNumber"); err != nil {
		t.Error(err)
	}
	if len(bios.Properties) != 2 {
		t.Error(bios.Properties)
	}
	if _, err := bios.Text("Manufacturer"); err == nil {
		t.Error("a property that was not selected was read")
	}
	query := itself()
	query.Select = []string{"ProcessId", "Name"}
	if id, err := one(t, p, query).Uint("ProcessId"); err != nil || id != uint64(os.Getpid()) {
		t.Error(id, err)
	}
}

func TestConditionsAreReadAsTheyAreWritten(t *testing.T) {
	p := open(t, Options{})
	for name, test := range map[string]struct {
		query Query
		want  int
	}{
		"a text":                    {Query{Namespace: CIMv2, Class: "Win32_Service", Where: []Equal{{"Name", "RpcSs"}}}, 1},
		"a text that there is not":  {Query{Namespace: CIMv2, Class: "Win32_Service", Where: []Equal{{"Name", "nosuch"}}}, 0},
		"a text with a backslash":   {Query{Namespace: CIMv2, Class: "Win32_Service", Where: []Equal{{"Name", `RpcSs\`}}}, 0},
		"a bool":                    {Query{Namespace: CIMv2, Class: "Win32_OperatingSystem", Where: []Equal{{"Primary", true}}}, 1},
		"a bool that does not hold": {Query{Namespace: CIMv2, Class: "Win32_OperatingSystem", Where: []Equal{{"Primary", false}}}, 0},
		"a number":                  {itself(), 1},
		"two":                       {Query{Namespace: CIMv2, Class: "Win32_OperatingSystem", Where: []Equal{{"Primary", true}, {"OSType", 17}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := p.Query(t.Context(), test.query)
			if err != nil || len(found) != test.want {
				t.Errorf("%d instances, %v", len(found), err)
			}
		})
	}
}

func TestManyQueriesInARow(t *testing.T) {
	p := open(t, Options{Workers: 1})
	for i := range 200 {
		found, err := p.Query(t.Context(), Query{Namespace: CIMv2, Class: "Win32_BIOS"})
		if err != nil || len(found) != 1 {
			t.Fatal(i, found, err)
		}
	}
}

func TestManyCallersAtATime(t *testing.T) {
	p := open(t, Options{Workers: 1})
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for i := range 20 {
				found, err := p.Query(t.Context(), Query{Namespace: CIMv2, Class: "Win32_OperatingSystem", Select: []string{"Caption"}})
				if err != nil || len(found) != 1 {
					t.Error(i, found, err)
				}
			}
		})
	}
	group.Wait()
}

// Wine's WMI is a part of this process, and what it returns for a class is one table for all threads, unguarded: two that ask for the same
// class at a time end the process. So each thread asks for another.
func TestManyThreadsAtATime(t *testing.T) {
	p := open(t, Options{Workers: 8})
	var group sync.WaitGroup
	for _, class := range []string{"Win32_OperatingSystem", "Win32_BIOS", "Win32_ComputerSystem", "Win32_BaseBoard", "Win32_SystemEnclosure", "Win32_ComputerSystemProduct", "Win32_DesktopMonitor"} {
		group.Go(func() {
			for i := range 40 {
				found, err := p.Query(t.Context(), Query{Namespace: CIMv2, Class: class})
				if err != nil || len(found) == 0 {
					t.Error(class, i, found, err)
				}
			}
		})
	}
	group.Wait()
}

func TestManyPools(t *testing.T) {
	for range 70 { // each with threads of its own that come and go
		p, err := Open(Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		_ = one(t, p, Query{Namespace: CIMv2, Class: "Win32_BIOS", Select: []string{"Name"}})
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestResultsAreBounded(t *testing.T) {
	p := open(t, Options{MaxResults: 2})
	if found, err := p.Query(t.Context(), Query{Namespace: CIMv2, Class: "Win32_Process"}); err == nil || !strings.Contains(err.Error(), "more than 2 instances") {
		t.Error(len(found), err)
	}
	if _, err := p.Query(t.Context(), itself()); err != nil {
		t.Error(err)
	}
}

func TestUnknownNamesAreErrors(t *testing.T) {
	p := open(t, Options{})
	var answer *Error
	_, err := p.Query(t.Context(), Query{Namespace: `root\nosuch`, Class: "C"})
	if !errors.Is(err, errors.ErrUnsupported) || !errors.As(err, &answer) || answer.Code != 0x8004100E {
		t.Error(err)
	}
	found, err := p.Query(t.Context(), Query{Namespace: CIMv2, Class: "Win32_NoSuch"})
	if err == nil {
		t.Logf("a class that there is not has %d instances here; Windows answers WBEM_E_INVALID_CLASS", len(found))
	}
	if len(found) > 0 || (err != nil && !errors.Is(err, errors.ErrUnsupported)) {
		t.Error(found, err)
	}
	for name, call := range map[string]Call{
		"class":                   {Namespace: CIMv2, Class: "Win32_NoSuch", Method: "M", In: map[string]any{"P": 1}},
		"method":                  {Namespace: CIMv2, Class: "Win32_Process", Method: "NoSuch", In: map[string]any{"P": 1}},
		"method of no parameters": {Namespace: CIMv2, Class: "Win32_Process", Method: "NoSuch"},
		"namespace":               {Namespace: `root\nosuch`, Class: "Win32_Process", Method: "Create", In: map[string]any{"P": 1}},
	} {
		if got, err := p.Call(t.Context(), call); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, err := p.Call(t.Context(), Call{Namespace: CIMv2, Class: "Win32_Process", Method: "Create", In: map[string]any{"NoSuch": "hunter2"}}); err == nil || !strings.Contains(err.Error(), "parameter NoSuch") || strings.Contains(err.Error(), "hunter2") {
		t.Error(got, err)
	}
}

func TestAssociationsAreFollowed(t *testing.T) {
	p := open(t, Options{})
	through := Association{Through: "Win32_LogicalDiskToPartition", Result: "Win32_DiskPartition"}
	found, err := p.Associated(t.Context(), Instance{Namespace: CIMv2, Path: `Win32_LogicalDisk.DeviceID="C:"`}, through)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if size, err := found[0].Uint("Size"); err != nil || size == 0 {
		t.Error(size, err)
	}
	found, err = p.Associated(t.Context(), Instance{Namespace: CIMv2, Path: `Win32_LogicalDisk.DeviceID="Q:"`}, through)
	if len(found) > 0 {
		t.Error(found, err)
	}
}

func TestReadsEndWithTheirContext(t *testing.T) {
	p := open(t, Options{Workers: 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	runtime.LockOSThread() // a session belongs to its thread
	defer runtime.UnlockOSThread()
	s, err := newSession(10)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if found, err := s.query(ctx, CIMv2, "SELECT * FROM Win32_BIOS", nil); !errors.Is(err, context.Canceled) {
		t.Error(found, err)
	}
	if _, err := p.Query(ctx, itself()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestClosedPoolIsNotAsked(t *testing.T) {
	p, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	_ = one(t, p, itself())
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.Query(t.Context(), itself()); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := p.Call(t.Context(), Call{Namespace: CIMv2, Class: "C", Method: "M"}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestOpenRefusesBadOptions(t *testing.T) {
	if _, err := Open(Options{Workers: 1000}); err == nil || !strings.Contains(err.Error(), "Workers") {
		t.Error(err)
	}
}

func TestTheFaultsOfOneQueryDoNotSpoilTheNext(t *testing.T) {
	p := open(t, Options{Workers: 1})
	for i := range 50 {
		if _, err := p.Query(t.Context(), Query{Namespace: fmt.Sprintf(`root\nosuch%d`, i), Class: "C"}); err == nil {
			t.Fatal("there is such a namespace")
		}
		_ = one(t, p, Query{Namespace: CIMv2, Class: "Win32_BIOS", Select: []string{"Name"}})
	}
}
