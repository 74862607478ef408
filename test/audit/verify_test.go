package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/test/audit/evidencetest"
	"github.com/pipeguard/pipeguard/test/harness"
)

// python is the second verifier's interpreter.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no python3: the second verifier did not run")
		}
		t.Skip("NOT RUN: there is no python3 for the second verifier")
	}
	return path
}

// kept is a log of two segments with a checkpoint in each, its key, and its last checkpoint in a file elsewhere.
func kept(t *testing.T) (dir, vkey, outside string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "log")
	key, err := evidence.NewKey(evidence.Origin("node-1"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := evidence.Open(context.Background(), evidence.Options{Dir: dir, Keys: []*evidence.Key{key}})
	if err != nil {
		t.Fatal(err)
	}
	var prev tlog.Hash
	rest, previous := "", ""
	for seq := 1; seq <= 7; seq++ {
		if seq == 1 || seq == 5 {
			previous = fmt.Sprintf("audit-%020d-00000000-0000-4000-8000-000000000000.jsonl", seq)
		}
		kind, stage := "request", "ResponseComplete"
		if seq == 1 || seq == 5 {
			kind, stage = "log", "LogOpen"
		}
		line := fmt.Appendf(nil, `{"v":1,"seq":%d,"type":"%s","stage":"%s"%s,"prev":"%s"}`, seq, kind, stage, rest, prev)
		rest = ""
		prev = evidence.Leaf(line)
		f, err := os.OpenFile(filepath.Join(dir, previous), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write(append(line, '\n'))
		info, err2 := f.Stat()
		if err := errors.Join(err, err2, f.Close()); err != nil {
			t.Fatal(err)
		}
		log.Append(prev)
		if seq == 4 {
			rest = fmt.Sprintf(`,"log":{"previous_segment":"%s","previous_bytes":%d}`, previous, info.Size())
			if err := log.Checkpoint(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := log.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, evidence.CheckpointFile)
	text, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(text[:len(text)-1], []byte("\n\n"+evidence.OriginPrefix)) + 2
	outside = filepath.Join(t.TempDir(), "outside")
	put(t, outside, text[at:])
	put(t, own, text[:at]) // what lies beside the log too would not count
	return dir, key.LogKey(), outside
}

func TestASecondVerifierAgrees(t *testing.T) {
	interpreter := python(t)
	dir, vkey, outside := kept(t)
	keys, err := evidence.ParseKeys(vkey)
	if err != nil {
		t.Fatal(err)
	}
	agree := func(name, want string, outside ...string) {
		t.Helper()
		r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: dir, Keys: keys, Outside: outside})
		if err != nil {
			t.Fatal(err)
		}
		second := secondVerdict(t, interpreter, append([]string{dir, vkey}, outside...)...)
		if string(r.Verdict) != want || string(second) != want {
			t.Errorf("%s: the first says %s (%v), the second %s, want %s", name, r.Verdict, r.Fault, second, want)
		}
	}
	agree("the log as it is", "ok", outside)
	agree("without an outside checkpoint", "incomplete")
	for _, args := range [][]string{{dir}, {filepath.Join(dir, "none"), vkey}} {
		out, errOut, code, err := harness.Run(exec.Command(interpreter, append([]string{"verify.py"}, args...)...)) //nolint:gosec // the verifier beside this file
		if err != nil || code != 2 {
			t.Errorf("%q: exit code %d, %v, %s%s", args, code, err, out, errOut)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() == evidence.CheckpointFile {
			continue
		}
		step := 1999 // a process for each is slow
		if os.Getenv("PIPEGUARD_EXHAUSTIVE") != "" {
			step = 13
		}
		for bit := 0; bit < len(text)*8; bit += step {
			edited := bytes.Clone(text)
			edited[bit/8] ^= 1 << (bit % 8)
			put(t, file, edited)
			agree(fmt.Sprintf("%s, bit %d", e.Name(), bit), "tampered", outside)
		}
		lines := bytes.SplitAfter(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
		for i := range lines {
			put(t, file, bytes.Join(append(append([][]byte{}, lines[:i]...), lines[i+1:]...), nil))
			agree(fmt.Sprintf("%s without line %d", e.Name(), i+1), "tampered", outside)
			put(t, file, append(bytes.Join(lines[:i+1], nil), text[len(bytes.Join(lines[:i], nil)):]...))
			agree(fmt.Sprintf("%s with line %d twice", e.Name(), i+1), "tampered", outside)
		}
		put(t, file, text)
	}
	agree("the log as it was", "ok", outside)
}

func put(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Logs that were killed, went on after it, and were pruned: both verifiers take them for what they are, and find a change in each.
func TestASecondVerifierAgreesAboutCrashesAndPruning(t *testing.T) {
	interpreter := python(t)
	for name, c := range map[string]struct {
		keep int64
		torn string
	}{
		"whole":                 {0, ""},
		"a line cut short":      {0, `{"v":1,"seq":9`},
		"a page that was lost":  {0, "{\"v\":1\x00\x00\x00\x00\n\x00"},
		"pruned":                {250_000, ""},
		"pruned after a killed": {250_000, `{"v":1,"se`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, keys, vkey, outside := continued(t, c.keep, c.torn)
			agree := func(what string, outside ...string) evidence.Verdict {
				t.Helper()
				r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: dir, Keys: keys, Outside: outside})
				if err != nil {
					t.Fatal(err)
				}
				if second := secondVerdict(t, interpreter, append([]string{dir, vkey}, outside...)...); second != r.Verdict {
					t.Errorf("%s: the first says %s %v, the second %s", what, r.Verdict, r.Fault, second)
				}
				return r.Verdict
			}
			want := evidence.VerdictOK
			if c.keep > 0 {
				want = evidence.VerdictIncomplete
			}
			if got := agree("as it is", outside); got != want {
				t.Errorf("as it is: %s, want %s", got, want)
			}
			if got := agree("without a checkpoint from elsewhere"); got != evidence.VerdictIncomplete {
				t.Errorf("without a checkpoint from elsewhere: %s", got)
			}
			now := readLog(t, dir)
			names := slices.DeleteFunc(slices.Sorted(maps.Keys(now)), func(name string) bool { _, ok := segment.ParseName(name); return !ok })
			names = []string{names[0], names[1], names[len(names)-1]}
			if c.keep > 0 {
				names = append(names, evidence.StartFile)
			}
			for _, file := range names {
				path, text := filepath.Join(dir, file), now[file]
				edited := bytes.Clone(text)
				edited[len(text)/2] ^= 1
				put(t, path, edited)
				if got := agree(file+" with another bit", outside); got != evidence.VerdictTampered {
					t.Errorf("%s with another bit: %s", file, got)
				}
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if got := agree("without "+file, outside); got != evidence.VerdictTampered {
					t.Errorf("without %s: %s", file, got)
				}
				put(t, path, text)
			}
		})
	}
}

// continued is a log of two runs, the first of which was killed with something behind its last record.
func continued(t *testing.T, keep int64, torn string) (dir string, keys evidence.Keys, vkey, outside string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "log")
	key, err := evidence.NewKey(evidence.Origin("node-1"))
	if err != nil {
		t.Fatal(err)
	}
	if keys, err = evidence.ParseKeys(key.LogKey()); err != nil {
		t.Fatal(err)
	}
	for run, records := range []int{1000, 300} {
		last, err := evidence.LastSigned(dir, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var log *evidence.Log
		w, err := segment.Open(t.Context(), dir, segment.Options{SegmentBytes: 100_000, KeepBytes: keep, NoSync: true, Covered: last.Size, OnFault: func(err error) {
			if torn == "" || !strings.Contains(err.Error(), "stand behind the record that closed") {
				t.Error(err)
			}
		}, Evidence: func(*segment.Found) (segment.Evidence, error) {
			log, err = evidence.Open(context.Background(), evidence.Options{Dir: dir, Keys: []*evidence.Key{key}})
			return log, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		isDone := func(i int) bool { // pruning is done beside the writing
			if i < records || keep == 0 || run == 0 {
				return i == records
			}
			first, _ := filepath.Glob(filepath.Join(dir, "audit-00000000000000000001-*.jsonl"))
			return len(first) == 0
		}
		for i := 0; !isDone(i); i++ {
			if i > 100*records {
				t.Fatal("nothing is pruned")
			}
			if _, err := w.Append(t.Context(), event(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), log.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		if run == 0 && torn != "" {
			names, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			newest := slices.Max(names)
			text, err := os.ReadFile(newest)
			if err != nil {
				t.Fatal(err)
			}
			put(t, newest, append(text, torn...))
		}
	}
	return dir, keys, key.LogKey(), evidencetest.Elsewhere(t, dir, key)
}
