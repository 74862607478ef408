package peer

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/test/harness"
)

// These tests put real processes into real named jobs, and play no part but the runtime's.

// drawn is the id of a container that is nobody else's, also not another test's.
func drawn(t *testing.T) string {
	t.Helper()
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(b)
}

// owned is a descriptor with an owner. Windows gives an object that is made without one its maker's; Wine gives it none.
func owned(t *testing.T, owner string) *windows.SECURITY_DESCRIPTOR {
	t.Helper()
	descriptor, err := windows.SecurityDescriptorFromString("O:" + owner + "G:" + owner + "D:(A;;GA;;;WD)")
	if err != nil {
		t.Fatal(err)
	}
	return descriptor
}

const administrators = "BA"

// create makes a kernel object by its full name.
func create(t *testing.T, call, name, owner string) windows.Handle {
	t.Helper()
	object, err := windows.NewNTUnicodeString(name)
	if err != nil {
		t.Fatal(err)
	}
	attributes := windows.OBJECT_ATTRIBUTES{ObjectName: object, SecurityDescriptor: owned(t, owner)}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	var handle windows.Handle
	proc := windows.NewLazySystemDLL("ntdll.dll").NewProc(call)
	// The two that are not for a job are an event's type and state.
	status, _, _ := proc.Call(uintptr(unsafe.Pointer(&handle)), windows.MAXIMUM_ALLOWED, uintptr(unsafe.Pointer(&attributes)), 0, 0)
	if windows.NTStatus(status) != windows.STATUS_SUCCESS {
		t.Fatalf("%s %s: %v", call, name, windows.NTStatus(status))
	}
	t.Cleanup(func() { _ = windows.CloseHandle(handle) })
	return handle
}

func siloJob(t *testing.T, id string) windows.Handle {
	t.Helper()
	return create(t, "NtCreateJobObject", `\Container_`+id, administrators)
}

// hostJob is made as the shim makes it, by a name of the session of services.
func hostJob(t *testing.T, id string) windows.Handle {
	t.Helper()
	return hostJobOf(t, id, administrators)
}

func hostJobOf(t *testing.T, id, owner string) windows.Handle {
	t.Helper()
	name, err := windows.UTF16PtrFromString(`Global\JobContainer_` + id)
	if err != nil {
		t.Fatal(err)
	}
	attributes := &windows.SecurityAttributes{SecurityDescriptor: owned(t, owner)}
	attributes.Length = uint32(unsafe.Sizeof(*attributes))
	job, err := windows.CreateJobObject(attributes, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = windows.CloseHandle(job) })
	return job
}

func assign(t *testing.T, child *harness.Conversation, jobs ...windows.Handle) {
	t.Helper()
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(child.PID()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = windows.CloseHandle(process) }()
	for _, job := range jobs {
		if err := windows.AssignProcessToJobObject(job, process); err != nil {
			t.Fatal(err)
		}
	}
}

// place resolves a connection with the runtime's word on some containers.
func placed(t *testing.T, accepted net.Conn, ids ...string) (caller.Caller, error) {
	t.Helper()
	var list []Candidate
	for _, id := range ids {
		list = append(list, Candidate{Container: caller.Container{ID: id, Name: "c"}, Pod: caller.Pod{Namespace: "n", Name: "p-" + id, UID: "u-" + id}})
	}
	peer, err := New(Options{Containers: &fakeContainers{known: list, fresh: list}}).Resolve(accepted, Note(accepted))
	if err != nil {
		return caller.Caller{}, err
	}
	t.Cleanup(func() { _ = peer.Close() })
	return peer.Identity(), nil
}

func wantContainer(t *testing.T, got caller.Caller, err error, id string, isHostProcess bool) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if got.Assurance != caller.AssurancePod || got.Container.ID != id || got.Pod.UID != "u-"+id || got.Container.HostProcess != isHostProcess {
		t.Errorf("got %+v of %+v (host process %t), want container %s", got.Container, got.Pod, isHostProcess, id)
	}
}

func wantHost(t *testing.T, got caller.Caller, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if got.Assurance != caller.AssuranceProcess || !got.IsHost || got.HasPod() {
		t.Errorf("a process of the host became %+v of %+v", got.Container, got.Pod)
	}
}

func TestCallerIsInItsOwnContainer(t *testing.T) {
	for name, make := range map[string]func(*testing.T, string) windows.Handle{"silo": siloJob, "host process": hostJob} {
		t.Run(name, func(t *testing.T) {
			mine, other := drawn(t), drawn(t)
			job := make(t, mine)
			siloJob(t, other)
			accepted, child := call(t)
			assign(t, child, job)
			got, err := placed(t, accepted, other, mine)
			wantContainer(t, got, err, mine, name == "host process")
		})
	}
}

func TestCallersOfTwoContainersAreNotMistaken(t *testing.T) {
	first, second, third := drawn(t), drawn(t), drawn(t)
	jobs := map[string]windows.Handle{first: siloJob(t, first), second: siloJob(t, second), third: hostJob(t, third)}
	accepted := map[string]net.Conn{}
	for id, job := range jobs {
		t.Run("caller in "+id[:8], func(t *testing.T) {
			var child *harness.Conversation
			accepted[id], child = call(t)
			assign(t, child, job)
			got, err := placed(t, accepted[id], first, second, third)
			wantContainer(t, got, err, id, id == third)
		})
	}
	outside, _ := call(t)
	got, err := placed(t, outside, first, second, third)
	wantHost(t, got, err)
}

func TestCallerInANestedJobIsInTheContainer(t *testing.T) {
	mine, other := drawn(t), drawn(t)
	inner, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = windows.CloseHandle(inner) })
	job := siloJob(t, mine)
	siloJob(t, other)
	accepted, child := call(t)
	assign(t, child, job, inner)
	got, err := placed(t, accepted, other, mine)
	wantContainer(t, got, err, mine, false)
}

func TestCallerInNestedContainersIsRefused(t *testing.T) {
	outer, inner := drawn(t), drawn(t)
	jobs := []windows.Handle{siloJob(t, outer), hostJob(t, inner)}
	accepted, child := call(t)
	assign(t, child, jobs...)
	if got, err := placed(t, accepted, outer, inner); err == nil || !strings.Contains(err.Error(), "as well") {
		t.Errorf("got %+v, %v", got.Container, err)
	}
}

func TestCallerInNoContainerIsTheHosts(t *testing.T) {
	tests := map[string]func(t *testing.T, id string) []windows.Handle{
		"in no job at all": func(*testing.T, string) []windows.Handle { return nil },
		"beside a job":     func(t *testing.T, id string) []windows.Handle { siloJob(t, id); return nil },
		"in a job of another kind of name": func(t *testing.T, id string) []windows.Handle {
			return []windows.Handle{create(t, "NtCreateJobObject", `\BaseNamedObjects\Container_`+id, administrators)}
		},
		"in a job whose name goes on": func(t *testing.T, id string) []windows.Handle {
			return []windows.Handle{create(t, "NtCreateJobObject", `\Container_`+id+"0", administrators)}
		},
		"in a job of a container that is not the runtime's": func(t *testing.T, _ string) []windows.Handle {
			return []windows.Handle{siloJob(t, drawn(t))}
		},
		"while an object that is no job has the name": func(t *testing.T, id string) []windows.Handle {
			create(t, "NtCreateEvent", `\BaseNamedObjects\JobContainer_`+id, administrators)
			return nil
		},
	}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			id := drawn(t)
			jobs := make(t, id)
			accepted, child := call(t)
			assign(t, child, jobs...)
			got, err := placed(t, accepted, id)
			wantHost(t, got, err)
		})
	}
}

func TestDeadCallerOfAContainerIsRefused(t *testing.T) {
	mine := drawn(t)
	job := siloJob(t, mine)
	accepted, child := call(t)
	assign(t, child, job)
	child.Kill()
	if got, err := placed(t, accepted, mine); err == nil {
		t.Errorf("got %+v", got)
	}
}

func TestIdentityOutlivesTheJobsName(t *testing.T) {
	mine := drawn(t)
	accepted, child := call(t)
	job := hostJob(t, mine)
	assign(t, child, job)
	list := []Candidate{{Container: caller.Container{ID: mine}, Pod: caller.Pod{Namespace: "n", Name: "p", UID: "u"}}}
	containers := &fakeContainers{known: list, fresh: list}
	peer, err := New(Options{Containers: containers}).Resolve(accepted, Note(accepted))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	if err := windows.CloseHandle(job); err != nil {
		t.Fatal(err)
	}
	containers.known, containers.fresh = nil, nil
	if err := peer.Alive(); err != nil || peer.Identity().Container.ID != mine {
		t.Errorf("%+v, %v", peer.Identity(), err)
	}
}

func TestJobThatSomebodyElseMadeIsRefused(t *testing.T) {
	const localService, users = "LS", "BU"
	for _, owner := range []string{localService, "NS", users, "WD", "S-1-5-93-2-1"} {
		t.Run(owner, func(t *testing.T) {
			mine := drawn(t)
			job := hostJobOf(t, mine, owner)
			accepted, child := call(t)
			assign(t, child, job)
			if got, err := placed(t, accepted, mine); err == nil || !strings.Contains(err.Error(), "and not the system") {
				t.Errorf("got %+v, %v", got.Container, err)
			}
		})
	}
	empty, err := windows.NewSecurityDescriptor()
	if err != nil {
		t.Fatal(err)
	}
	if err := judgeOwner(empty); err == nil {
		t.Error("a job without an owner is believed")
	}
}

func TestJobOfTheSystemIsBelieved(t *testing.T) {
	self, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		t.Fatal(err)
	}
	for _, owner := range []string{"SY", administrators, self.User.Sid.String()} {
		t.Run(owner, func(t *testing.T) {
			mine := drawn(t)
			job := hostJobOf(t, mine, owner)
			accepted, child := call(t)
			assign(t, child, job)
			got, err := placed(t, accepted, mine)
			wantContainer(t, got, err, mine, true)
		})
	}
}

func TestOpenProcessAsksForMoreOnlyIfItHasTo(t *testing.T) {
	if got := fmt.Sprint(NewResolver().(resolver).kernel.(windowsKernel).rights); got != "0" {
		t.Errorf("without containers: %s", got)
	}
	k := newResolver(&placer{}).(resolver).kernel.(windowsKernel)
	p, err := k.Open(nil, uint32(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// link makes a symbolic link of the object manager: https://learn.microsoft.com/windows/win32/devnotes/ntcreatesymboliclinkobject
func link(t *testing.T, name, target string) {
	t.Helper()
	object, err := windows.NewNTUnicodeString(name)
	if err != nil {
		t.Fatal(err)
	}
	to, err := windows.NewNTUnicodeString(target)
	if err != nil {
		t.Fatal(err)
	}
	attributes := windows.OBJECT_ATTRIBUTES{ObjectName: object, SecurityDescriptor: owned(t, administrators)}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	const all = 0xF0001 // SYMBOLIC_LINK_ALL_ACCESS
	var handle windows.Handle
	status, _, _ := windows.NewLazySystemDLL("ntdll.dll").NewProc("NtCreateSymbolicLinkObject").Call(
		uintptr(unsafe.Pointer(&handle)), all, uintptr(unsafe.Pointer(&attributes)), uintptr(unsafe.Pointer(to)))
	if windows.NTStatus(status) != windows.STATUS_SUCCESS {
		t.Fatalf("link %s to %s: %v", name, target, windows.NTStatus(status))
	}
	t.Cleanup(func() { _ = windows.CloseHandle(handle) })
}

// wantDoubt is for a caller that is in no container that is known, while one of those cannot be asked about.
func wantDoubt(t *testing.T, got caller.Caller, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if got.Assurance != caller.AssuranceProcess || got.IsHost || got.Doubt == "" || got.HasPod() {
		t.Errorf("got %+v of %+v (host %t, doubt %q), want a process that is in doubt", got.Container, got.Pod, got.IsHost, got.Doubt)
	}
}

func TestALinkFromOneContainersNameToAnothersJobNamesNobody(t *testing.T) {
	for name, target := range map[string]func(*testing.T, string) (windows.Handle, string){
		"to a silo's job": func(t *testing.T, id string) (windows.Handle, string) { return siloJob(t, id), `\Container_` + id },
		"to a job of the host's processes": func(t *testing.T, id string) (windows.Handle, string) {
			return hostJob(t, id), `\BaseNamedObjects\JobContainer_` + id
		},
	} {
		t.Run(name, func(t *testing.T) {
			driver, attacker, other := drawn(t), drawn(t), drawn(t)
			job, full := target(t, attacker)
			link(t, `\BaseNamedObjects\JobContainer_`+driver, full)
			accepted, child := call(t)
			assign(t, child, job)
			got, err := placed(t, accepted, driver, other)
			wantDoubt(t, got, err)
			got, err = placed(t, accepted, driver, attacker)
			wantContainer(t, got, err, attacker, name != "to a silo's job")
		})
	}
}

func TestAJobThatCannotBeOpenedDecidesAboutNoOtherCaller(t *testing.T) {
	closed, mine := drawn(t), drawn(t)
	descriptor, err := windows.SecurityDescriptorFromString("O:LSG:LSD:(D;;GA;;;WD)")
	if err != nil {
		t.Fatal(err)
	}
	text, err := windows.UTF16PtrFromString(`Global\JobContainer_` + closed)
	if err != nil {
		t.Fatal(err)
	}
	attributes := &windows.SecurityAttributes{SecurityDescriptor: descriptor}
	attributes.Length = uint32(unsafe.Sizeof(*attributes))
	job, err := windows.CreateJobObject(attributes, text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = windows.CloseHandle(job) })
	if opened, err := openJob(`\BaseNamedObjects\JobContainer_` + closed); err == nil {
		_ = windows.CloseHandle(opened)
		t.Skip("this system opens a job whose access list denies everybody")
	}
	accepted, child := call(t)
	assign(t, child, siloJob(t, mine))
	got, err := placed(t, accepted, closed, mine)
	wantContainer(t, got, err, mine, false)
	outside, _ := call(t)
	got, err = placed(t, outside, closed)
	wantDoubt(t, got, err)
}
