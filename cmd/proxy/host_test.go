//go:build linux

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
)

func TestTheInventedMachineWritesDownWhatItDoes(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	p := startProgram(t, "--host", "memory", "--memory-journal", journal, "--config", configFor(t, "Mkdir"), "--audit-log", "-")
	if _, err := v1.NewFilesystemClient(p.client(t, "filesystem-v1")).Mkdir(t.Context(), &v1.MkdirRequest{Path: `C:\var\lib\kubelet\x`}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(journal) // while the program runs
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); len(lines) != 2 || !strings.Contains(lines[0], `"Mkdir"`) || !strings.Contains(lines[1], `"ended":true`) {
		t.Errorf("the journal says %q", text)
	}
}

func TestAJournalThatCannotBeWrittenStopsTheStart(t *testing.T) {
	var stderr strings.Builder
	if code := run(t.Context(), []string{"--socket-dir", filepath.Join(t.TempDir(), "s"), "--host", "memory", "--memory-journal", t.TempDir(), "--audit-log", "-"}, io.Discard, &stderr); code == 0 || !strings.Contains(stderr.String(), "journal") {
		t.Errorf("exit code %d, %s", code, stderr.String())
	}
}
