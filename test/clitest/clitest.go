// Package clitest runs command lines in tests, compares what they print with golden files, and makes the logs and policies that they read.
package clitest

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/policies"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Result is what a user sees of a command line.
type Result struct {
	Code        int
	Out, ErrOut string
}

// Run runs a command line with text on its standard input.
func Run(stdin string, run func(in io.Reader, out, errOut io.Writer) int) Result {
	var out, errOut bytes.Buffer
	code := run(strings.NewReader(stdin), &out, &errOut)
	return Result{code, out.String(), errOut.String()}
}

var varying = regexp.MustCompile(`(Decision |sha256:)[a-z0-9.]+`)

// Golden compares text with a file in testdata/golden, without what differs from run to run.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	got = varying.ReplaceAllString(got, "${1}(varies)")
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got); after a change that users should see, run with -update:\n%s", file, diff)
	}
}

// Write writes a file of a directory, and returns its name.
func Write(t *testing.T, dir, file, text string) string {
	t.Helper()
	name := filepath.Join(dir, file)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil { //nolint:gosec // the test names the file
		t.Fatal(err)
	}
	return name
}

// Edit replaces a text that a file of a directory holds.
func Edit(t *testing.T, dir, file, from, to string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), from) {
		t.Fatalf("%s does not hold %q", file, from)
	}
	Write(t, dir, file, strings.Replace(string(text), from, to, 1))
}

// Stream writes events as a session that was opened and closed, as they stand in a file of an earlier version, and returns the file.
func Stream(t *testing.T, events ...audit.Event) string {
	t.Helper()
	clock := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	opening := audit.Event{Type: audit.TypeLog, Stage: audit.StageLogOpen, Log: &audit.Log{}}
	closing := audit.Event{Type: audit.TypeLog, Stage: audit.StageLogClose}
	var text bytes.Buffer
	stream := audit.NewStream(&text)
	for _, e := range slices.Concat([]audit.Event{opening}, events, []audit.Event{closing}) {
		if e.Time.IsZero() {
			e.Time = clock
		}
		if _, err := stream.Append(t.Context(), &e); err != nil {
			t.Fatal(err)
		}
	}
	return Write(t, t.TempDir(), "audit.jsonl", text.String())
}

// Segments writes events into a directory with the writer of the proxy. An event that ends an intent gets the intent's number.
func Segments(t *testing.T, dir string, events ...audit.Event) {
	t.Helper()
	w, err := segment.Open(t.Context(), dir, segment.Options{NoSync: true, OnFault: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	intents := map[string]uint64{}
	for _, e := range events {
		if e.IntentSeq != 0 {
			e.IntentSeq = intents[e.ID]
		}
		seq, err := w.Append(t.Context(), &e)
		if err != nil {
			t.Fatal(err)
		}
		intents[e.ID] = seq
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// Policies is a directory with the built-in policies of admission and the tests of mounts alone: all of them take most of a minute with
// the race detector.
func Policies(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "policies")
	if err := os.CopyFS(dir, policies.FS()); err != nil {
		t.Fatal(err)
	}
	KeepTests(t, dir, "mount_test.rego")
	return dir
}

// KeepTests removes the tests of a directory but those of some files.
func KeepTests(t *testing.T, dir string, files ...string) {
	t.Helper()
	tests, err := filepath.Glob(filepath.Join(dir, "*_test.rego"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "fixtures_test.rego")
	for _, file := range tests {
		if slices.Contains(files, filepath.Base(file)) {
			continue
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}
