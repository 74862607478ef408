package auditcmd

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
)

func TestAuditReportNeverReplacesWhatItIsMadeFrom(t *testing.T) {
	dir, keys, outside := keptLog(t)
	segments, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	link := filepath.Join(t.TempDir(), "report.html")
	if err := os.Symlink(keys, link); err != nil {
		link = keys // no link can be made here
	}
	for _, name := range []string{segments[0], keys, outside, link} {
		before, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got := evidenceCommand(t, "report", dir, "--keys", keys, "--checkpoint", outside, "-o", name, "--overwrite")
		after, err := os.ReadFile(name)
		if err != nil || got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, ": it is not ") || !bytes.Equal(before, after) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	page := filepath.Join(t.TempDir(), "report.html")
	for range 2 {
		if got := evidenceCommand(t, "report", dir, "--keys", keys, "--checkpoint", outside, "-o", page, "--overwrite"); got.Code != 0 {
			t.Errorf("a page of before: %+v", got)
		}
	}
}

// held are the contents of all files below a directory.
func held(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAuditReportWritesNothingIntoTheDirectoryOfALog(t *testing.T) {
	dir, keys, outside := keptLog(t)
	segments, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	by := filepath.Join(t.TempDir(), "by")
	if err := os.Symlink(dir, by); err != nil {
		by = dir // no link can be made here
	}
	before := held(t, dir)
	for _, log := range []string{dir, segments[0]} {
		for _, name := range []string{"checkpoints", "lock", "start", "audit-x", "audit-x.jsonl", "report.html", filepath.Join("below", "report.html")} {
			for _, in := range []string{dir, by} {
				for _, more := range [][]string{nil, {"--overwrite"}} {
					args := append([]string{"report", log, "--keys", keys, "--checkpoint", outside, "-o", filepath.Join(in, name)}, more...)
					got := evidenceCommand(t, args...)
					if got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "would lie in the directory of the log") {
						t.Errorf("%q: %+v", args, got)
					}
				}
			}
		}
	}
	if after := held(t, dir); !maps.Equal(before, after) {
		t.Errorf("the log was changed: %d files, %d before", len(after), len(before))
	}
}

func TestAuditReportWritesThroughNoHardLink(t *testing.T) {
	dir, keys, outside := keptLog(t)
	page, other := filepath.Join(t.TempDir(), "report.html"), filepath.Join(t.TempDir(), "other")
	report := func() result {
		return evidenceCommand(t, "report", dir, "--keys", keys, "--checkpoint", outside, "-o", page, "--overwrite")
	}
	if err := os.Link(filepath.Join(dir, "checkpoints"), page); err != nil {
		t.Skip("no links can be made here:", err)
	}
	before := held(t, dir)
	if got := report(); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "is not replaced") {
		t.Errorf("a link to the checkpoints of the log: %+v", got)
	}
	if after := held(t, dir); !maps.Equal(before, after) {
		t.Error("the log was changed")
	}
	if err := os.Remove(page); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(other, page); err != nil {
		t.Fatal(err)
	}
	if got := report(); got.Code != cli.ExitYes {
		t.Errorf("%+v", got)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "other" {
		t.Errorf("the page was written through the link: %d bytes, %v", len(text), err)
	}
	left, err := os.ReadDir(filepath.Dir(page))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the page: %v, %v", left, err)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "</html>") {
		t.Errorf("no page: %v", err)
	}
}
