package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		if err != nil || got.code != exitBadInput || !strings.Contains(got.errOut, "is not replaced") || !bytes.Equal(before, after) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	page := filepath.Join(t.TempDir(), "report.html")
	for range 2 {
		if got := evidenceCommand(t, "report", dir, "--keys", keys, "--checkpoint", outside, "-o", page, "--overwrite"); got.code != 0 {
			t.Errorf("a page of before: %+v", got)
		}
	}
}
