package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/harness"
)

// apart starts the proxy as a process of its own, which can be held up.
func apart(t *testing.T, args ...string) (sockets string, process *harness.Process) {
	t.Helper()
	sockets = filepath.Join(shortDir(t), "s")
	process = apartAs(t, os.Args[0], append([]string{"--socket-dir", sockets}, args...)...)
	process.Stderr.Await(t, 1, `"msg":"serving"`)
	return sockets, process
}

// apartAs starts the proxy in a program that is a copy of this one.
func apartAs(t *testing.T, program string, args ...string) *harness.Process {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "-test.run=^TestActor$") //nolint:gosec // of the test
	command.Env = append(os.Environ(), "PIPEGUARD_ACTOR=proxy", "PIPEGUARD_ARGS="+string(text))
	process, err := harness.Start("the proxy", command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	return process
}

// reborn starts a process in a control group that has the number of one which has ended (proc_sys_kernel(5), ns_last_pid).
// Others on this machine start processes too, so that it takes more than one attempt.
func reborn(t *testing.T, pid int, group string) {
	t.Helper()
	const last = "/proc/sys/kernel/ns_last_pid"
	for range 500 {
		if err := os.WriteFile(last, []byte(strconv.Itoa(pid-1)), 0); err != nil {
			const missing = "NOT TESTED: process ids cannot be chosen here: "
			if os.Getenv("CI") == "true" {
				t.Fatal(missing, err)
			}
			t.Skip(missing, err)
		}
		command := exec.Command("sleep", "60")
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		if command.Process.Pid == pid {
			t.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() })
			if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
		_, _ = command.Process.Kill(), command.Wait()
	}
	t.Fatalf("no process got the number %d", pid)
}

// The proxy is slow to accept: by then the one who opened the connection has ended, and its number is a process of the
// driver's container.
func TestANumberThatWasGivenAwayBeforeTheAcceptNamesNobody(t *testing.T) {
	n := newMachine(t, "")
	sockets, proxy := apart(t, "--config", n.config)
	pipe, log := filepath.Join(sockets, "csi-proxy-filesystem-v1.sock"), filepath.Join(sockets, "audit")
	opener, receiver := newCaller(t, n.group(neighbour.id)), newCaller(t, n.group(neighbour.id))
	if err := proxy.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	opener.open(pipe)
	opener.handTo(receiver)
	opener.Kill()
	reborn(t, opener.PID(), n.group(driverPlace.id))
	if err := proxy.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	expect(t, receiver.call(under("reborn")), "Unavailable")
	driver := newCaller(t, n.group(driverPlace.id))
	driver.open(pipe)
	expect(t, driver.call(under("driver")), "OK")
	rejected := records(t, log, func(e audit.Event) bool {
		return e.Type == audit.TypeConnection && e.Outcome.Result == audit.ResultRejected && e.Who.Pod == nil && strings.Contains(e.Outcome.Error, "cannot be identified")
	})
	if len(rejected) != 1 {
		t.Errorf("%d connections are recorded as refused", len(rejected))
	}
}

// The driver has opened a connection and ended; its number is again a process of its container, and somebody else has the
// connection.
func TestANumberThatWasGivenAwayLaterVouchesForNobody(t *testing.T) {
	n := newMachine(t, "")
	pipe, log, _ := guarded(t, n)
	driver, receiver := newCaller(t, n.group(driverPlace.id)), newCaller(t, n.group(neighbour.id))
	driver.open(pipe)
	driver.handTo(receiver)
	expect(t, receiver.call(under("alive")), "OK")
	driver.Kill()
	reborn(t, driver.PID(), n.group(driverPlace.id))
	expect(t, receiver.call(under("reborn")), "PermissionDenied", "the process has ended")
	if e := ended(t, log, under("reborn")); e.IntentSeq != 0 || e.Decision.Effect != audit.EffectDeny {
		t.Errorf("recorded as %+v", e.Decision)
	}
}
