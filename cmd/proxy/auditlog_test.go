//go:build !windows

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/test/audit/evidencetest"
	"github.com/pipeguard/pipeguard/test/audit/recorded"
	"github.com/pipeguard/pipeguard/test/harness"
)

// lines are the raw records of a log.
func lines(t *testing.T, log string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(log, "audit-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // of the test
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

func reconcile(t *testing.T, log string) audit.Report {
	t.Helper()
	r, err := recorded.Reconcile(recorded.Events(log))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// verified holds a log against the public half of the key that was made for it.
func verified(t *testing.T, log string, outside ...string) evidence.Report {
	t.Helper()
	keys, err := evidence.ReadKeys(log + "-signing.key.pub")
	if err != nil {
		t.Fatal(err)
	}
	r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: log, Keys: keys, Outside: outside})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// pathExists is a call that the access list of configFor allows.
func pathExists(t *testing.T, p *program) {
	t.Helper()
	if _, err := v1.NewFilesystemClient(p.client(t, "filesystem-v1")).PathExists(t.Context(), &v1.PathExistsRequest{Path: `C:\var\lib\kubelet`}); err != nil {
		t.Fatal(err)
	}
}

func TestLogIsSignedFromItsFirstStartOn(t *testing.T) {
	p := startProgram(t, "--config", configFor(t, "PathExists"))
	log := filepath.Join(p.sockets, "audit")
	pathExists(t, p)
	p.stop()
	key, err := evidence.ReadKey(log + "-signing.key")
	if err != nil {
		t.Fatal(err)
	}
	if r := verified(t, log); r.Verdict != evidence.VerdictIncomplete || r.OwnCovered != r.LastSeq || r.Records == 0 {
		t.Errorf("beside its own checkpoints alone: %+v", r)
	}
	if r := verified(t, log, evidencetest.Elsewhere(t, log, key)); r.Verdict != evidence.VerdictOK {
		t.Errorf("with checkpoints from elsewhere: %+v", r)
	}
	for _, file := range []string{log, log + "-signing.key"} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			t.Errorf("%s has mode %v", file, mode)
		}
	}
	if strings.Contains(p.stderr.String(), "PRIVATE") {
		t.Error("the private key is in the diagnostic log")
	}
}

// start runs a proxy that is expected to refuse, and returns what it says.
func refusal(t *testing.T, args ...string) string {
	t.Helper()
	stderr := new(harness.Output)
	if code := run(t.Context(), append([]string{"--socket-dir", filepath.Join(t.TempDir(), "s")}, args...), io.Discard, stderr); code != 1 {
		t.Errorf("exit code %d", code)
	}
	return stderr.String()
}

func TestSignedLogGetsNoOtherKey(t *testing.T) {
	p := startProgram(t)
	log := filepath.Join(p.sockets, "audit")
	p.stop()
	if err := os.Remove(log + "-signing.key"); err != nil {
		t.Fatal(err)
	}
	if said := refusal(t, "--audit-log", log); !strings.Contains(said, "bring it back") {
		t.Errorf("said %s", said)
	}
}

func TestRolledBackLogIsNotContinued(t *testing.T) {
	p := startProgram(t, "--config", configFor(t, "PathExists"))
	log := filepath.Join(p.sockets, "audit")
	pathExists(t, p)
	p.stop()
	files, err := filepath.Glob(filepath.Join(log, "audit-*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	all := strings.SplitAfter(lines(t, log), "\n")
	if err := os.WriteFile(files[0], []byte(strings.Join(all[:len(all)-2], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := refusal(t, "--audit-log", log); !strings.Contains(said, "move this directory away") {
		t.Errorf("said %s", said)
	}
}

// Whoever watches the event log learns of changed checkpoints, whether the log can go on or not.
func TestWhatIsWrongWithCheckpointsIsTold(t *testing.T) {
	p := startProgram(t, "--config", configFor(t, "PathExists"))
	log := filepath.Join(p.sockets, "audit")
	pathExists(t, p)
	p.stop()
	file := filepath.Join(log, evidence.CheckpointFile)
	genuine, err := os.ReadFile(file) //nolint:gosec // of the test
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(genuine), "\n\n")
	if !found {
		t.Fatalf("no checkpoint:\n%s", genuine)
	}
	put := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const told = `"event":150`
	put(string(genuine) + "no checkpoint\n\n" + string(genuine))
	if said := refusal(t, "--audit-log", log); !strings.Contains(said, told) || !strings.Contains(said, file) {
		t.Errorf("said %s", said)
	}
	put(head + "\n\n— somebody AAAAAAAA\n\n" + string(genuine))
	again := startProgram(t, "--audit-log", log)
	again.stop()
	if said := again.stderr.String(); !strings.Contains(said, told) || !strings.Contains(said, "the checkpoints in the directory of the audit log were changed") {
		t.Errorf("said %s", said)
	}
}

func TestPlacesThatAreNoLogAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	directory := t.TempDir()
	for _, name := range []string{file, filepath.Join(directory, "thesis.txt")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(directory, 0o755); err != nil { //nolint:gosec // that it stays so is the test
		t.Fatal(err)
	}
	if said := refusal(t, "--audit-log", file); !strings.Contains(said, "is not a directory") {
		t.Errorf("said %s", said)
	}
	if said := refusal(t, "--audit-log", directory); !strings.Contains(said, "thesis.txt") {
		t.Errorf("said %s", said)
	}
	if info, err := os.Stat(directory); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the directory was closed to its users: %v, %v", info.Mode(), err)
	}
}

func TestLogThatIsRemovedIsBegunAgainLoudly(t *testing.T) {
	p := startProgram(t, "--config", configFor(t, "PathExists"))
	log := filepath.Join(p.sockets, "audit")
	pathExists(t, p)
	files, err := filepath.Glob(filepath.Join(log, "audit-*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	client := v1.NewFilesystemClient(p.client(t, "filesystem-v1"))
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		if _, err := client.PathExists(t.Context(), &v1.PathExistsRequest{Path: `C:\var\lib\kubelet`}); err != nil {
			t.Fatal(err)
		}
		if now, _ := filepath.Glob(filepath.Join(log, "audit-*.jsonl")); len(now) == 1 {
			break
		}
	}
	p.stop()
	if r := verified(t, log); r.Verdict == evidence.VerdictOK || !strings.Contains(lines(t, log), `"cause":"missing"`) {
		t.Errorf("%+v\n%s", r, lines(t, log))
	}
}
