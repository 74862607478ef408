package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// guarded is a proxy on a node with pods.
func guarded(t *testing.T, n *machine, more ...string) (pipe, log string, p *program) {
	t.Helper()
	p = startProgram(t, append([]string{"--config", n.config}, more...)...)
	return filepath.Join(p.sockets, "csi-proxy-filesystem-v1.sock"), filepath.Join(p.sockets, "audit"), p
}

// under is a path that no other call names.
func under(name string) string { return `C:\var\lib\kubelet\` + name }

// isPod says of which container a record's caller is.
func isPod(t *testing.T, e audit.Event, p place, pid int) {
	t.Helper()
	w := e.Who
	if w.Assurance != "pod" || w.Pod == nil || w.Container == nil || w.Host || w.Process == nil {
		t.Fatalf("recorded as %+v", w)
	}
	if got := fmt.Sprint(w.Pod.Namespace, w.Pod.Name, w.Pod.UID, w.Container.Name, w.Container.ID); got != fmt.Sprint(p.namespace, p.pod, p.uid, p.container, p.id) {
		t.Errorf("recorded as %+v of %+v, want %+v", w.Container, w.Pod, p)
	}
	if int(w.Process.PID) != pid {
		t.Errorf("recorded as process %d, want %d", w.Process.PID, pid)
	}
}

func TestPodsOnOnePipeAreNotMistaken(t *testing.T) {
	n := newMachine(t, "")
	pipe, log, _ := guarded(t, n)
	for _, c := range []struct {
		name  string
		place place
		group []string
		code  string
	}{
		{"the driver", driverPlace, []string{driverPlace.id}, "OK"},
		{"the driver, in a group of its own making", driverPlace, []string{driverPlace.id, "inner"}, "OK"},
		{"its sidecar", sidecarPlace, []string{sidecarPlace.id}, "PermissionDenied"},
		{"a pod beside it", neighbour, []string{neighbour.id}, "PermissionDenied"},
		{"a pod that names a group of its own after the driver's container", neighbour, []string{neighbour.id, driverPlace.id}, "PermissionDenied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			who := newCaller(t, n.group(c.group...))
			who.open(pipe)
			about := under(strings.ReplaceAll(c.name, " ", "-"))
			expect(t, who.call(about), c.code)
			e := ended(t, log, about)
			isPod(t, e, c.place, who.PID())
			if e.Who.Pod.ServiceAccount != c.place.account {
				t.Errorf("service account %q", e.Who.Pod.ServiceAccount)
			}
		})
	}
	t.Run("a process of the node", func(t *testing.T) {
		who := newCaller(t, "")
		who.open(pipe)
		expect(t, who.call(under("host")), "PermissionDenied")
		if e := ended(t, log, under("host")); !e.Who.Host || e.Who.Pod != nil || e.Who.Assurance != "process" {
			t.Errorf("recorded as %+v", e.Who)
		}
	})
	t.Run("a process in a container that the runtime does not know", func(t *testing.T) {
		who := newCaller(t, n.group(strings.Repeat("e", 64)))
		who.open(pipe)
		expect(t, who.call(under("unknown")), "PermissionDenied")
	})
}

// What is proven is who opened a connection. Whoever is given it speaks in that name while the opener lives, as with any
// descriptor, and in nobody's after that.
func TestAConnectionIsItsOpenersAndNobodysAfterThat(t *testing.T) {
	n := newMachine(t, "")
	pipe, log, _ := guarded(t, n)
	for _, c := range []struct {
		name              string
		opener, receiver  place
		before            string
		beforeIsTheOpener bool
	}{
		{"a pod gives it to the driver, which gains nothing and lends nothing", neighbour, driverPlace, "PermissionDenied", true},
		{"the driver gives its own away", driverPlace, neighbour, "OK", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			opener, receiver := newCaller(t, n.group(c.opener.id)), newCaller(t, n.group(c.receiver.id))
			opener.open(pipe)
			opener.handTo(receiver)
			about := under(c.opener.namespace + "-alive")
			expect(t, receiver.call(about), c.before)
			isPod(t, ended(t, log, about), c.opener, opener.PID())
			opener.Kill()
			about = under(c.opener.namespace + "-dead")
			expect(t, receiver.call(about), "PermissionDenied")
			isPod(t, ended(t, log, about), c.opener, opener.PID())
		})
	}
	if e := ended(t, log, under("storage-dead")); !strings.Contains(e.Decision.Reason, "the process has ended") || e.IntentSeq != 0 {
		t.Errorf("decision %+v", e.Decision)
	}
}

func TestAnOpenerThatBecomesAnotherProgramIsRefused(t *testing.T) {
	n := newMachine(t, "")
	pipe, log, _ := guarded(t, n)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	opener, receiver := newCaller(t, n.group(driverPlace.id)), newCaller(t, n.group(neighbour.id))
	opener.open(pipe)
	opener.handTo(receiver)
	expect(t, receiver.call(under("before")), "OK")
	opener.Say("become %s", sleep)
	exe := fmt.Sprintf("/proc/%d/exe", opener.PID())
	for deadline := time.Now().Add(attackPatience); ; time.Sleep(time.Millisecond) {
		if now, err := os.Readlink(exe); err == nil && now != os.Args[0] {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it did not become another program")
		}
	}
	expect(t, receiver.call(under("after")), "PermissionDenied")
	if e := ended(t, log, under("after")); e.Decision.Effect != audit.EffectDeny || !strings.Contains(e.Decision.Reason, "another program") {
		t.Errorf("decision %+v", e.Decision)
	}
}

// A process that is moved keeps what was proven of it when it connected; what it opens next is another container's.
func TestAProcessThatMovesIsNamedAnew(t *testing.T) {
	n := newMachine(t, "")
	pipe, log, _ := guarded(t, n)
	who := newCaller(t, n.group(neighbour.id))
	who.open(pipe)
	expect(t, who.call(under("first")), "PermissionDenied")
	who.enter(n.group(driverPlace.id))
	expect(t, who.call(under("moved")), "PermissionDenied")
	isPod(t, ended(t, log, under("moved")), neighbour, who.PID())
	who.open(pipe)
	expect(t, who.call(under("again")), "OK")
	isPod(t, ended(t, log, under("again")), driverPlace, who.PID())
	who.enter(n.group(neighbour.id))
	who.open(pipe)
	expect(t, who.call(under("back")), "PermissionDenied")
	isPod(t, ended(t, log, under("back")), neighbour, who.PID())
}

func TestAPodOfTheSameNameIsAnotherPod(t *testing.T) {
	n := newMachine(t, "")
	pipe, log, _ := guarded(t, n)
	first := newCaller(t, n.group(driverPlace.id))
	first.open(pipe)
	expect(t, first.call(under("first")), "OK")
	n.change(func() { n.containers, n.sandboxes, n.accounts = nil, nil, nil })
	n.add(sameNameLater, 7)
	later := newCaller(t, n.group(sameNameLater.id))
	later.open(pipe)
	expect(t, later.call(under("later")), "PermissionDenied") // its service account is another
	isPod(t, ended(t, log, under("later")), sameNameLater, later.PID())
	// What is left of the first pod is in a container that no pod has any more.
	first.open(pipe)
	if got := first.call(under("rest")); strings.HasPrefix(got, "OK") {
		t.Errorf("a process of a pod that is gone: %s", got)
	}
}

func TestAContainerThatHasEndedIsNobody(t *testing.T) {
	n := newMachine(t, "")
	pipe, _, _ := guarded(t, n)
	who := newCaller(t, n.group(driverPlace.id))
	who.open(pipe)
	expect(t, who.call(under("before")), "OK")
	n.change(func() { n.containers[0].State = runtimeapi.ContainerState_CONTAINER_EXITED })
	other := newCaller(t, n.group(neighbour.id, "x"+driverPlace.id[1:])) // any question that makes the proxy list again
	other.open(pipe)
	expect(t, other.call(under("other")), "PermissionDenied")
	late := newCaller(t, n.group(strings.Repeat("f", 64)))
	late.open(pipe)
	expect(t, late.call(under("late")), "PermissionDenied")
	who.open(pipe)
	expect(t, who.call(under("after")), "Unavailable")
}

func TestDoubtIsNoPermission(t *testing.T) {
	t.Run("the runtime does not answer", func(t *testing.T) {
		n := newMachine(t, "")
		n.change(func() { n.silent = true })
		pipe, log, _ := guarded(t, n)
		who := newCaller(t, n.group(driverPlace.id))
		who.open(pipe)
		expect(t, who.call(under("silent")), "PermissionDenied")
		if e := ended(t, log, under("silent")); e.Who.Assurance != "process" || e.Who.Doubt == "" || e.Who.Host || e.Who.Pod != nil {
			t.Errorf("recorded as %+v", e.Who)
		}
		n.change(func() { n.silent = false })
		who.open(pipe)
		expect(t, who.call(under("answers")), "OK")
	})
	t.Run("the kubelet does not know the pod", func(t *testing.T) {
		n := newMachine(t, "")
		n.change(func() { n.accounts = n.accounts[1:] })
		pipe, log, _ := guarded(t, n)
		who := newCaller(t, n.group(driverPlace.id))
		who.open(pipe)
		expect(t, who.call(under("unlisted")), "PermissionDenied")
		if e := ended(t, log, under("unlisted")); e.Who.Pod.ServiceAccount != "" || e.Who.Doubt == "" {
			t.Errorf("recorded as %+v", e.Who)
		}
	})
	t.Run("two pods claim one uid", func(t *testing.T) {
		n := newMachine(t, "")
		n.change(func() {
			n.accounts = append(n.accounts, fmt.Sprintf(`{"metadata":{"name":"x","namespace":"team","uid":%q},"spec":{"serviceAccountName":"x"}}`, driverPlace.uid))
		})
		pipe, _, _ := guarded(t, n)
		who := newCaller(t, n.group(driverPlace.id))
		who.open(pipe)
		expect(t, who.call(under("twice")), "PermissionDenied")
	})
}
