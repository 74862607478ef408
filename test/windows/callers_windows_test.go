package windows

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// The processes of these tests are put into real jobs with the names that containers have, and the proxy asks a runtime on a
// pipe which containers there are.

const diskPipe = `\\.\pipe\csi-proxy-disk-v1`

// driverRules allow the driver's pod every operation on disks.
const driverRules = `acl:
  rules:
  - name: driver
    pipes: ["disk-v1"]
    operations: ["*"]
    callers: [{namespace: storage, serviceAccount: csi-node, container: driver}]
`

// last is the record that ended last.
func (p *proxy) last(method string) audit.Event {
	p.t.Helper()
	_, end := p.terminal("/v1.Disk/"+method, "")
	return *end
}

func TestARuleForAPodIsForThatPodAlone(t *testing.T) {
	driver, other := newPlace(t, "storage", "csi-node", "a"), newPlace(t, "team", "web", "b")
	p := startWith(t, containers(t, ownUser(t), driver, other)+driverRules)
	for _, c := range []struct {
		name, code string
		place      place
	}{
		{"a process of the node", "PermissionDenied", place{}},
		{"the driver", "OK", driver},
		{"a pod beside it", "PermissionDenied", other},
	} {
		t.Run(c.name, func(t *testing.T) {
			who := newCaller(t, c.place.job)
			who.open(diskPipe)
			who.expect("ListDiskIDs", c.code)
			w := p.last("ListDiskIDs").Who
			if w.Process == nil || int(w.Process.PID) != who.PID() {
				t.Fatalf("recorded as %+v", w.Process)
			}
			if c.place.id == "" {
				if !w.Host || w.Pod != nil {
					t.Errorf("recorded as %+v of %+v", w, w.Pod)
				}
				return
			}
			if w.Pod == nil || w.Container == nil || w.Pod.UID != c.place.uid || w.Container.ID != c.place.id || w.Pod.ServiceAccount != c.place.pod {
				t.Errorf("recorded as %+v of %+v", w.Container, w.Pod)
			}
		})
	}
}

func TestADuplicatedHandleIsItsOpenersAndNobodysAfterThat(t *testing.T) {
	driver, other := newPlace(t, "storage", "csi-node", "a"), newPlace(t, "team", "web", "b")
	p := startWith(t, containers(t, ownUser(t), driver, other)+driverRules)
	opener, receiver := newCaller(t, driver.job), newCaller(t, other.job)
	opener.open(diskPipe)
	opener.handTo(receiver)
	receiver.expect("ListDiskIDs", "OK")
	if w := p.last("ListDiskIDs").Who; int(w.Process.PID) != opener.PID() || w.Pod.UID != driver.uid {
		t.Errorf("while its opener lives: recorded as %+v of %+v", w.Process, w.Pod)
	}
	opener.Kill()
	receiver.expect("ListDiskIDs", "PermissionDenied", "the process has ended")
	if e := p.last("ListDiskIDs"); e.IntentSeq != 0 || e.Decision.Effect != audit.EffectDeny {
		t.Errorf("recorded as %+v", e.Decision)
	}
	// The proxy holds the process, so that its number is nobody else's while the connection is there.
	for range 15 {
		if next := newCaller(t, driver.job); next.PID() == opener.PID() {
			t.Fatalf("process %d is there again", opener.PID())
		} else {
			next.Kill()
		}
	}
	receiver.expect("ListDiskIDs", "PermissionDenied", "the process has ended")
}

func TestAHandleWhoseOpenerEndedBeforeItSaidAnythingIsRefused(t *testing.T) {
	driver, other := newPlace(t, "storage", "csi-node", "a"), newPlace(t, "team", "web", "b")
	startWith(t, containers(t, ownUser(t), driver, other)+driverRules)
	opener, receiver := newCaller(t, driver.job), newCaller(t, other.job)
	opener.open(diskPipe)
	opener.handTo(receiver)
	opener.Kill()
	if got := receiver.Ask("call ListDiskIDs"); strings.HasPrefix(got, "OK") {
		t.Errorf("got %s", got)
	}
}

// Whoever answers as the runtime says who callers are: one of another account is not believed, and nobody is in a container.
func TestARuntimeOfAnotherAccountIsNotBelieved(t *testing.T) {
	driver := newPlace(t, "storage", "csi-node", "a")
	p := startWith(t, containers(t, "S-1-5-18", driver)+driverRules)
	who := newCaller(t, driver.job)
	who.open(diskPipe)
	who.expect("ListDiskIDs", "PermissionDenied")
	if w := p.last("ListDiskIDs").Who; w.Pod != nil || w.Host || w.Doubt == "" || w.Assurance != "process" {
		t.Errorf("recorded as %+v", w)
	}
}

// The list allows the driver everything on disks, and has not named it for what destroys them.
func TestTheRequestPolicyRefusesWhatAStarAllowed(t *testing.T) {
	driver := newPlace(t, "storage", "csi-node", "a")
	p := startWith(t, containers(t, ownUser(t), driver)+driverRules)
	who := newCaller(t, driver.job)
	who.open(diskPipe)
	who.expect("PartitionDisk", "PermissionDenied", "PN002", "would be partitioned")
	e := p.last("PartitionDisk")
	if e.Decision.Rule != "PN002" || e.Decision.Policy.Name != "request" || e.IntentSeq != 0 || e.Who.Pod == nil {
		t.Errorf("recorded as %+v by %+v", e.Decision, e.Decision.Policy)
	}
	stdout, stderr, code := pipeguard(t, "", "policy", "eval", "--from-audit", p.records, "--id", e.ID, "--config", p.config)
	if code != 0 || !strings.Contains(stdout, "PN002") {
		t.Errorf("the same call again: exit code %d\n%s%s", code, stdout, stderr)
	}
	who.expect("ListDiskIDs", "OK")
}
