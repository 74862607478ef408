//go:build e2e

package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

// A run has three processes of the same program. The outermost makes the directory and the namespaces and clears up after
// them. The second is process 1 in the namespaces: it only reaps, and when it ends, the kernel kills all that still runs
// there and takes away the mounts, the interfaces and the iptables chains. The third runs the tests.
const (
	envStage = "PIPEGUARD_E2E_STAGE"
	envDir   = "PIPEGUARD_E2E_DIR"
)

const namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// Enter runs main in namespaces of their own, with an empty directory for all that it leaves, and returns the exit code.
// Where a part is missing it says so and does not run main.
func Enter(main func(dir string) int) int {
	dir := os.Getenv(envDir)
	var code int
	var err error
	switch os.Getenv(envStage) {
	case "":
		code, err = outside()
	case "first":
		code, err = first(dir)
	case "run":
		return main(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/e2e:", err)
		return 1
	}
	return code
}

// outside starts the first process, waits for it and clears up what namespaces do not: the directory, control groups and
// settings of the kernel.
func outside() (code int, err error) {
	if parts := missing(); len(parts) > 0 {
		line, code := refusal(parts)
		fmt.Fprintln(os.Stderr, line)
		return code, nil
	}
	dir, err := newDir()
	if err != nil {
		return 0, err
	}
	settings := readSettings()
	defer func() {
		err = errors.Join(err, settings.restore(), removeGroups(groupName(dir)), os.RemoveAll(dir))
	}()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)

	// The kernel kills the first process when the thread that made it ends, so the thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...) // #nosec G204 G702 -- this very program
	cmd.Env = append(os.Environ(), envStage+"=first", envDir+"="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("make namespaces: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			fmt.Fprintf(os.Stderr, "test/e2e: %v: everything is ended\n", s)
			_ = cmd.Process.Kill() // with it go all processes of its namespace
		case err := <-ended:
			if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
				return 0, fmt.Errorf("wait for the namespaces: %w", err)
			}
			if code := cmd.ProcessState.ExitCode(); code >= 0 {
				return code, nil
			}
			return 1, nil // killed
		}
	}
}

// first is process 1: it prepares the place, starts the tests and reaps every process that is left to it until they end.
func first(dir string) (int, error) {
	if err := furnish(dir); err != nil {
		return 0, err
	}
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	if err := os.Setenv(envStage, "run"); err != nil {
		return 0, err
	}
	child, err := os.StartProcess(exe, os.Args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}}) // #nosec G702 -- this very program
	if err != nil {
		return 0, fmt.Errorf("start the tests: %w", err)
	}
	// An interrupt from a terminal reaches every process; this one ends when the tests have.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for the tests: %w", err)
		case pid != child.Pid:
		case status.Exited():
			return status.ExitStatus(), nil
		default:
			return 1, fmt.Errorf("the tests ended by %v", status.Signal())
		}
	}
}

// groupName is the control group, in every hierarchy, that the containers of a run are in.
func groupName(dir string) string { return filepath.Base(dir) }
