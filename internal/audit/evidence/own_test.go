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

// What lies in another directory than the segments may be the log's own all the same.
func TestWithoutCheckpointsOfTheLogsOwnNothingIsToldToBeFromElsewhere(t *testing.T) {
	m := sample(t)
	held := m.outside()
	witness := newKey(t, "witness.example.com")
	text := files(t, m.dir)
	apart := t.TempDir() // as a backup may lay it out: segments in one directory, the rest beside it
	below := filepath.Join(apart, "segments")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	var segments []string
	for _, name := range segmentNames(text) {
		segments = append(segments, filepath.Join(below, name))
		writeFile(t, filepath.Join(below, name), text[name])
	}
	own := filepath.Join(apart, CheckpointFile)
	writeFile(t, own, text[CheckpointFile])
	is := func(what string, o VerifyOptions, verdict Verdict, covered uint64, why string) {
		t.Helper()
		r := verify(t, o)
		if r.Verdict != verdict || r.OutsideCovered != covered || !strings.Contains(strings.Join(r.Incomplete, " "), why) {
			t.Errorf("%s: %s, %d records covered from outside, %v, fault %v", what, r.Verdict, r.OutsideCovered, r.Incomplete, r.Fault)
		}
	}
	const untold = "no checkpoint of the log's own is here"
	is("its own checkpoints", VerifyOptions{Files: segments, Keys: m.keys(), Outside: []string{own}}, VerdictIncomplete, 0, untold)
	is("a file that cannot be told from them", VerifyOptions{Files: segments, Keys: m.keys(), Outside: []string{held}}, VerdictIncomplete, 0, untold)
	is("its own checkpoints named too", VerifyOptions{Files: append(segments, own), Keys: m.keys(), Outside: []string{held}}, VerdictOK, m.seq, "")
	is("its own named twice", VerifyOptions{Files: append(segments, own), Keys: m.keys(), Outside: []string{own}}, VerdictIncomplete, 0, "it is the log's own file")

	raw, err := os.ReadFile(held)
	if err != nil {
		t.Fatal(err)
	}
	head, err := Inspect(raw)
	if err != nil {
		t.Fatal(err)
	}
	note, err := sign(head, m.clock, m.key, witness)
	if err != nil {
		t.Fatal(err)
	}
	cosigned := filepath.Join(t.TempDir(), "cosigned")
	writeFile(t, cosigned, note)
	is("what a known witness cosigned", VerifyOptions{Files: segments, Keys: keysOf(t, m.key.LogKey(), witness.WitnessKey()), Outside: []string{cosigned}}, VerdictOK, m.seq, "")
	is("what a stranger cosigned", VerifyOptions{Files: segments, Keys: m.keys(), Outside: []string{cosigned}}, VerdictIncomplete, 0, untold)

	writeFile(t, filepath.Join(below, CheckpointFile), text[CheckpointFile])
	is("with its own checkpoints beside it", VerifyOptions{Files: segments, Keys: m.keys(), Outside: []string{held}}, VerdictOK, m.seq, "")
}
