package windows

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// enter puts a caller into one more job.
func (c *caller) enter(job windows.Handle) {
	c.t.Helper()
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(c.PID()))
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = windows.CloseHandle(process) }()
	if err := windows.AssignProcessToJobObject(job, process); err != nil {
		c.t.Fatal(err)
	}
}

// A process that somebody has put into the jobs of two containers is in neither.
func TestACallerInTwoContainersIsNobody(t *testing.T) {
	driver, other := newPlace(t, "storage", "csi-node", "a"), newPlace(t, "team", "web", "b")
	apart := newPlace(t, "storage", "csi-node", "c") // the job of the first is within that of the second from here on
	p := startWith(t, containers(t, ownUser(t), driver, other, apart)+driverRules)
	who := newCaller(t, other.job)
	who.enter(driver.job)
	who.open(diskPipe)
	if got := who.Ask("call ListDiskIDs"); !strings.HasPrefix(got, "Unavailable") {
		t.Errorf("got %s", got)
	}
	isRefused := func(e audit.Event) bool {
		return e.Type == audit.TypeConnection && e.Outcome.Result == audit.ResultRejected && strings.Contains(e.Outcome.Error, "as well") && e.Who.Pod == nil
	}
	// The client may hear of the end before the record is written.
	for deadline := time.Now().Add(callTimeout); !slices.ContainsFunc(p.events(), isRefused) && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
	}
	if n := len(slices.DeleteFunc(p.events(), func(e audit.Event) bool { return !isRefused(e) })); n != 1 {
		t.Errorf("%d connections are recorded as refused", n)
	}
	only := newCaller(t, apart.job)
	only.open(diskPipe)
	only.expect("ListDiskIDs", "OK")
}

// What was proven is that of the moment of the connection: a process that enters the driver's job later gains nothing by it on
// the connection that it has.
func TestACallerThatEntersAContainerLaterIsNamedAnew(t *testing.T) {
	driver := newPlace(t, "storage", "csi-node", "a")
	p := startWith(t, containers(t, ownUser(t), driver)+driverRules)
	who := newCaller(t, 0)
	who.open(diskPipe)
	who.expect("ListDiskIDs", "PermissionDenied")
	who.enter(driver.job)
	who.expect("ListDiskIDs", "PermissionDenied")
	if w := p.last("ListDiskIDs").Who; !w.Host || w.Pod != nil {
		t.Errorf("recorded as %+v of %+v", w, w.Pod)
	}
	who.open(diskPipe)
	who.expect("ListDiskIDs", "OK")
	if w := p.last("ListDiskIDs").Who; w.Host || w.Pod == nil || w.Pod.UID != driver.uid {
		t.Errorf("recorded as %+v of %+v", w, w.Pod)
	}
}

// Rules in words of an older API version stop the start, with their place in a file whose path has a drive.
func TestRulesInOlderWordsAreRefusedWithTheirPlace(t *testing.T) {
	s := newSite(t)
	s.rewrite("[PathExists, IsSymlink, Mkdir]", "[PathExists, LinkPath]")
	output, code := s.command("check-config", s.config)
	if want := fmt.Sprintf("%s:12:30: acl.rules[1].operations[1]: ", s.config); code == 0 || !strings.Contains(output, want) || !strings.Contains(output, "CreateSymlink") {
		t.Errorf("exit code %d, want %q in:\n%s", code, want, output)
	}
}
