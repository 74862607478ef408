package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// forge makes all hashes of a log anew, as somebody would who has changed a record and has no key.
func forge(t *testing.T, dir string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl")) // sorted, and their names begin with their numbers
	if err != nil || len(segments) < 2 {
		t.Fatal(segments, err)
	}
	prev := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for _, file := range segments {
		text, err := os.ReadFile(file) //nolint:gosec // of this test
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		for line := range bytes.Lines(text) {
			at := bytes.LastIndex(line, []byte(`,"prev":"`))
			line = fmt.Appendf(nil, `%s,"prev":"%s"}`, line[:at], prev)
			leaf := segment.Leaf(line)
			prev = base64.StdEncoding.EncodeToString(leaf[:])
			out.Write(append(line, '\n'))
		}
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHashesThatWereMadeAnewFitNoCheckpoint(t *testing.T) {
	s := playOnce(t)
	keys, err := evidence.ReadKeys(s.keys())
	if err != nil {
		t.Fatal(err)
	}
	whole, forged := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "forged")
	for from, to := range map[string]string{s.evidence(): whole, s.edited(): forged} {
		if err := copyLog(from, to); err != nil {
			t.Fatal(err)
		}
		forge(t, to)
	}
	for name, c := range map[string]struct {
		dir  string
		want evidence.Verdict
	}{
		"nothing was changed": {whole, evidence.VerdictOK}, // so the forger makes no mistake
		"a record was":        {forged, evidence.VerdictTampered},
	} {
		r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: c.dir, Keys: keys, Outside: []string{s.checkpoint()}})
		if err != nil || r.Verdict != c.want {
			t.Errorf("%s: %s %v %v", name, r.Verdict, r.Fault, err)
		}
		if c.want == evidence.VerdictTampered && !strings.Contains(r.Fault.Problem, "checkpoint") {
			t.Errorf("%s: %v", name, r.Fault)
		}
	}
}

func TestALogWhoseEndWasCutOffIsNeverCalledWhole(t *testing.T) {
	s := playOnce(t)
	keys, err := evidence.ReadKeys(s.keys())
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut")
	if err := copyLog(s.evidence(), cut); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(cut, "audit-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	// The last segment goes, and with it the checkpoints that would miss it.
	err = errors.Join(os.Remove(segments[len(segments)-1]), os.Remove(filepath.Join(cut, evidence.CheckpointFile)))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		outside []string
		want    evidence.Verdict
	}{"with nothing from elsewhere": {nil, evidence.VerdictIncomplete}, "with the witness's word": {[]string{s.checkpoint()}, evidence.VerdictTampered}} {
		r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: cut, Keys: keys, Outside: c.outside})
		if err != nil || r.Verdict != c.want {
			t.Errorf("%s: %s %v %v, want %s", name, r.Verdict, r.Fault, err, c.want)
		}
	}
}
