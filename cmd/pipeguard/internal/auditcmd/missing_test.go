package auditcmd

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/test/clitest"
)

// segmentsOf is a log of several segments, of nine connections alone.
func segmentsOf(t *testing.T) (dir string, names []string) {
	t.Helper()
	return segmentsFor(t, 9)
}

func segmentsFor(t *testing.T, connections int) (dir string, names []string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "log")
	w, err := segment.Open(t.Context(), dir, segment.Options{NoSync: true, SegmentBytes: 2 * audit.MaxRecord, OnFault: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range connections {
		e := audit.Event{Type: audit.TypeConnection, Stage: audit.StageConnectionClosed, ID: fmt.Sprint(i), Outcome: &audit.Outcome{Result: audit.ResultIdle, Error: strings.Repeat("x", 7000)}}
		if _, err := w.Append(t.Context(), &e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	segments, _, err := segment.List(dir)
	if err != nil || len(segments) < 3 {
		t.Fatal(segments, err)
	}
	for _, s := range segments {
		names = append(names, s.Path)
	}
	return dir, names
}

// unverifying are the commands that read a log without verifying it.
func unverifying(dir string) map[string][]string {
	return map[string][]string{
		"show": {"show", dir}, "one": {"show", dir, "10"}, "search": {"search", dir}, "count": {"search", dir, "--count"}, "filtered": {"search", dir, "--count", "--stage", "open"},
		"tail": {"tail", dir}, "stats": {"stats", dir}, "stats in JSON": {"stats", dir, "-o", "json"}, "csv": {"export", dir, "--format", "csv"}, "report": {"report", dir, "-o", "-"},
		"hunt": {"hunt", dir}, "check": {"check", dir},
	}
}

// A segment that is not read, or not there, is not passed over: whatever reads the log says so, and ends with exit code 3.
func TestASegmentThatIsNotReadIsMissed(t *testing.T) {
	blanked := func(name string) error {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(name, append([]byte(strings.Repeat(" ", 9000)), text...), 0o600)
	}
	for name, c := range map[string]struct {
		damage func(dir string, names []string) error
		says   string
	}{
		"in the middle":              {func(_ string, names []string) error { return blanked(names[1]) }, "are missing before record"},
		"in the middle, and removed": {func(_ string, names []string) error { return os.Remove(names[1]) }, "are missing before record"},
		"the first":                  {func(_ string, names []string) error { return blanked(names[0]) }, "the segment is not read, and may hold records of the log"},
		"the last":                   {func(_ string, names []string) error { return blanked(names[len(names)-1]) }, "the segment is not read, and may hold records of the log"},
		"the first, by another name": {func(_ string, names []string) error { return os.Rename(names[0], names[0]+"L") }, "the segment is not read, and may hold records of the log"},
		"the last, by another name": {func(_ string, names []string) error {
			return os.Rename(names[len(names)-1], strings.TrimSuffix(names[len(names)-1], ".jsonl")+".JSONL")
		}, "the segment is not read, and may hold records of the log"},
		"the first, by the name of a file beside segments": {func(dir string, names []string) error {
			return os.Rename(names[0], filepath.Join(dir, "start"))
		}, "the segment is not read, and may hold records of the log"},
		"the last, as the checkpoints": {func(dir string, names []string) error {
			return os.Rename(names[len(names)-1], filepath.Join(dir, "checkpoints"))
		}, "the segment is not read, and may hold records of the log"},
		"the last, in a directory": {func(dir string, names []string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "start"), 0o700), os.Rename(names[len(names)-1], filepath.Join(dir, "start", "x")))
		}, "the segment is not read, and may hold records of the log"},
		"the last, as the lock": {func(dir string, names []string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "lock")), os.Rename(names[len(names)-1], filepath.Join(dir, "lock")))
		}, "the segment is not read, and may hold records of the log"},
		"the last, declared void by one that takes its place": {func(dir string, names []string) error {
			last := names[len(names)-1]
			text, err := os.ReadFile(last)
			if err != nil {
				return err
			}
			planted := strings.Replace(last, filepath.Base(last)[27:31], "0000", 1)
			line := strings.Replace(strings.SplitAfter(string(text), "\n")[0], `"log":{`, `"log":{"void":["`+filepath.Base(last)+`"],`, 1)
			return os.WriteFile(planted, []byte(line), 0o600)
		}, "another segment declares that none of them counts"},
		"the first, packed and damaged": {func(_ string, names []string) error { return os.Rename(names[0], names[0]+".gz") }, "not packed by gzip"},
		"declared to stand behind the end by an added one": {func(_ string, names []string) error {
			last := names[len(names)-1]
			text, err := os.ReadFile(last)
			if err != nil {
				return err
			}
			first, rest, _ := strings.Cut(string(text), "\n")
			seq, _, _ := segment.ParseLine([]byte(first))
			leaf := segment.Leaf([]byte(first))
			planted := fmt.Sprintf("audit-%020d-0b7e6a52-7c1d-4a59-9d62-3f6f6f0f7e10.jsonl", seq+1)
			return os.WriteFile(filepath.Join(filepath.Dir(last), planted), fmt.Appendf(nil,
				`{"v":1,"seq":%d,"type":"log","stage":"LogOpen","time":"2026-03-02T12:00:00Z","session":"s","id":"","log":{"previous_segment":%q,"previous_bytes":%d,"torn_bytes":%d,"previous_torn_hash":"%x","segment":%q},"prev":"%s"}`+"\n",
				seq+1, filepath.Base(last), len(first)+1, len(rest), sha256.Sum256([]byte(rest)), planted, base64.StdEncoding.EncodeToString(leaf[:])), 0o600)
		}, "whole records that continue record"},
		"declared void": {func(dir string, names []string) error {
			text, err := os.ReadFile(names[len(names)-1])
			if err != nil {
				return err
			}
			line := strings.Replace(strings.SplitAfter(string(text), "\n")[0], `"log":{`, `"log":{"void":["`+filepath.Base(names[1])+`"],`, 1)
			return os.WriteFile(names[len(names)-1], []byte(line), 0o600)
		}, "are missing before record"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, names := segmentsOf(t)
			if name == "declared void" {
				if err := blanked(names[1]); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.damage(dir, names); err != nil {
				t.Fatal(err)
			}
			for reader, args := range unverifying(dir) {
				got := evidenceCommand(t, args...)
				if reader == "report" && got.Code == cli.ExitNo { // without keys too it compares what segments say of each other
					continue
				}
				if got.Code != cli.ExitIncomplete {
					t.Errorf("%s: exit code %d, %s", reader, got.Code, got.ErrOut)
				}
				if said := got.ErrOut + got.Out; !strings.Contains(said, c.says) && (reader != "check" || !strings.Contains(said, "expected number")) {
					t.Errorf("%s does not say %q: %s", reader, c.says, got.ErrOut)
				}
			}
		})
	}
}

// With keys, commands that read ended with 0 where the verification and they themselves without keys ended with 3.
func TestASegmentBehindAVerifiedEndIsMissed(t *testing.T) {
	for name, text := range map[string]string{"a byte": "x", "a NUL before records": "\x00{}\n"} {
		dir, keys, outside := keptLog(t)
		last, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, fmt.Sprintf("audit-%020d-00000000-0000-4000-8000-000000000000.jsonl", last.LastSeq+1))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		given := []string{"--keys", keys, "--checkpoint", outside}
		for _, with := range [][]string{nil, given} {
			for reader, args := range unverifying(dir) {
				if reader == "one" {
					args[2] = "2"
				}
				if got := evidenceCommand(t, append(args, with...)...); got.Code != cli.ExitIncomplete || !strings.Contains(got.Out+got.ErrOut, filepath.Base(file)) {
					t.Errorf("%s, %s, with %q: exit code %d, %s", name, reader, with, got.Code, got.ErrOut)
				}
			}
		}
		if got := evidenceCommand(t, append([]string{"verify", dir}, given...)...); got.Code != cli.ExitIncomplete {
			t.Errorf("%s, verify: %+v", name, got)
		}
	}
}

// A log that is whole, one whose first segments are gone, and what a process leaves that begins a segment miss nothing.
func TestALogThatIsReadToItsEndMissesNothing(t *testing.T) {
	for name, damage := range map[string]func(dir string, names []string) error{
		"whole":                     func(string, []string) error { return nil },
		"without its first segment": func(_ string, names []string) error { return os.Remove(names[0]) },
		"with an empty segment next": func(dir string, _ []string) error {
			return os.WriteFile(filepath.Join(dir, segment.Name(14)), nil, 0o600)
		},
		"with a file far ahead": func(dir string, _ []string) error {
			return os.WriteFile(filepath.Join(dir, segment.Name(999_999)), []byte("x"), 0o600)
		},
	} {
		dir, names := segmentsOf(t)
		if err := damage(dir, names); err != nil {
			t.Fatal(err)
		}
		for reader, args := range unverifying(dir) {
			if got := evidenceCommand(t, args...); got.Code != cli.ExitYes && reader != "hunt" && reader != "report" || got.Code > cli.ExitNo {
				t.Errorf("%s, %s: exit code %d, %s", name, reader, got.Code, got.ErrOut)
			}
		}
	}
}

// The numbers that are missing are named once. Segments that are named one by one are what was wanted.
func TestAMissingSegmentIsNamedBeforeWhatFollowsIt(t *testing.T) {
	dir, names := segmentsOf(t)
	if err := os.Remove(names[1]); err != nil {
		t.Fatal(err)
	}
	first, _ := segment.ParseName(filepath.Base(names[1]))
	next, _ := segment.ParseName(filepath.Base(names[2]))
	want := fmt.Sprintf("records %d to %d are missing before record %d", first, next-1, next)
	got := evidenceCommand(t, "search", dir, "--count")
	if !strings.Contains(got.ErrOut, want) || strings.Count(got.ErrOut, "are missing") != 1 {
		t.Errorf("no %q: %+v", want, got)
	}
	files := slices.Concat(names[:1], names[2:])
	if got := evidenceCommand(t, append([]string{"search", "--count"}, files...)...); got.Code != cli.ExitYes {
		t.Errorf("of files: %+v", got)
	}
}

// A record that is no summary counts as one, whatever it claims.
func TestARecordOfTheLogCountsAsOne(t *testing.T) {
	opening := audit.Event{
		Type: audit.TypeLog, Stage: audit.StageLogOpen, Time: time.Now(), Log: &audit.Log{}, Who: &audit.Who{Assurance: "none"},
		Outcome: &audit.Outcome{Result: audit.ResultDenied, Code: "PermissionDenied", Count: 1_000_000},
	}
	file := clitest.Stream(t, opening)
	for name, args := range map[string][]string{
		"count": {"search", file, "--count"}, "show": {"show", file}, "csv": {"export", file, "--format", "csv"}, "ocsf": {"export", file, "--format", "ocsf"}, "check": {"check", file},
	} {
		if got := evidenceCommand(t, args...); strings.Contains(got.Out, "1000000 times") || strings.Contains(got.Out, "1000001") || strings.Contains(got.Out, ",1000000,") || strings.Contains(got.Out, `"count":1000000`) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := evidenceCommand(t, "search", file, "--count"); got.Out != fmt.Sprintln(strings.Count(fileText(t, file), "\n")) {
		t.Errorf("%+v", got)
	}
}

func fileText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
