package evidence

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A log that was set back, with its checkpoints, fits these whether its directory is named or its segments are.
func TestTheLogsOwnCheckpointsAreNotHeldElsewhereWhenItsSegmentsAreNamed(t *testing.T) {
	m := sample(t)
	witnessed := m.outside()
	segments, own := paths(t, m)
	text := files(t, m.dir)[CheckpointFile]
	elsewhere := t.TempDir()
	below := filepath.Join(m.dir, "start-of-something")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(file string, text []byte) string {
		t.Helper()
		writeFile(t, file, text)
		return file
	}
	hard := filepath.Join(elsewhere, "hard")
	if os.Link(own, hard) != nil {
		hard = own // no links can be made here
	}
	held, err := os.ReadFile(witnessed)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{
		"the file itself": own, "another name of it": hard, "a copy of it": put(filepath.Join(elsewhere, "copy"), text),
		"another file of the directory": put(filepath.Join(m.dir, "held"), held), "a file below the directory": put(filepath.Join(below, "held"), held),
	} {
		r := verify(t, VerifyOptions{Files: segments, Keys: m.keys(), Outside: []string{file}})
		if r.Verdict != VerdictIncomplete || r.OutsideCovered != 0 || !strings.Contains(strings.Join(r.Incomplete, " "), "does not count as held elsewhere") {
			t.Errorf("%s: %s, %d records covered from outside, %v", name, r.Verdict, r.OutsideCovered, r.Incomplete)
		}
	}
	if r := verify(t, VerifyOptions{Files: segments, Keys: m.keys(), Outside: []string{witnessed}}); r.Verdict != VerdictOK {
		t.Errorf("a file that was held elsewhere: %s, %v, fault %v", r.Verdict, r.Incomplete, r.Fault)
	}
}
