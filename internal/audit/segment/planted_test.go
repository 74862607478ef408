package segment_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// node is a log that is started again and again.
type node struct {
	dir    string
	key    *evidence.Key
	faults []string // that the last start told
}

// start opens the log, writes a few records, and closes it.
func (n *node) start(t *testing.T) error {
	t.Helper()
	n.faults = nil
	last, err := evidence.LastCheckpoint(n.dir)
	if err != nil {
		t.Fatal(err)
	}
	var tree *evidence.Log
	w, err := segment.Open(t.Context(), n.dir, segment.Options{
		NoSync: true, Covered: last.Size, SegmentBytes: 2 * audit.MaxRecord,
		OnFault: func(err error) { n.faults = append(n.faults, fmt.Sprint(err)) },
		Evidence: func(*segment.Found) (segment.Evidence, error) {
			tree, err = evidence.Open(context.Background(), evidence.Options{Dir: n.dir, Keys: []*evidence.Key{n.key}})
			return tree, err
		},
	})
	if err != nil {
		return err
	}
	for i := range 5 {
		if _, err := w.Append(t.Context(), &audit.Event{Type: audit.TypeConnection, Stage: audit.StageConnectionClosed, ID: fmt.Sprint(i), Outcome: &audit.Outcome{Result: audit.ResultIdle, Error: strings.Repeat("x", 7000)}}); err != nil {
			t.Fatal(err)
		}
	}
	return errors.Join(w.Close(), tree.Close(context.Background()))
}

func newNode(t *testing.T) *node {
	t.Helper()
	key, err := evidence.NewKey(evidence.Origin("node-1"))
	if err != nil {
		t.Fatal(err)
	}
	n := &node{dir: filepath.Join(t.TempDir(), "log"), key: key}
	if err := n.start(t); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *node) segments(t *testing.T) (names []string) {
	t.Helper()
	list, _, err := segment.List(n.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.File)
	}
	return names
}

func (n *node) put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// begins is the first record of a segment that somebody plants.
func begins(seq uint64, prev, log string) string {
	return fmt.Sprintf(`{"v":1,"seq":%d,"type":"log","stage":"LogOpen","time":"2026-03-02T12:00:00Z","session":"s","id":"","log":{%s},"prev":"%s"}`+"\n", seq, log, prev)
}

var noHash = strings.Repeat("A", 43) + "="

// What somebody puts into the directory of a log ends no node's service, is named, and does not pass for a part of the log.
func TestALogGoesOnBesideAPlantedFile(t *testing.T) {
	for name, plant := range map[string]func(t *testing.T, n *node, segments []string, last string, size int){
		"a number above all numbers": func(t *testing.T, n *node, s []string, _ string, _ int) {
			n.put(t, planted(9999999999999999999), begins(9999999999999999999, noHash, `"void":["`+strings.Join(s, `","`)+`"]`))
		},
		"a number far ahead": func(t *testing.T, n *node, _ []string, _ string, _ int) {
			n.put(t, planted(999999), begins(999999, noHash, `"cause":"start"`))
		},
		"a number far ahead that follows on the last": func(t *testing.T, n *node, _ []string, last string, size int) {
			n.put(t, planted(999999), begins(999999, noHash, fmt.Sprintf(`"previous_segment":%q,"previous_bytes":%d`, last, size)))
		},
		"the number that is due, and another hash": func(t *testing.T, n *node, _ []string, last string, size int) {
			head, err := evidence.LastCheckpoint(n.dir)
			if err != nil {
				t.Fatal(err)
			}
			n.put(t, planted(head.Size+1), begins(head.Size+1, noHash, fmt.Sprintf(`"previous_segment":%q,"previous_bytes":%d`, last, size)))
		},
		"a number within": func(t *testing.T, n *node, _ []string, _ string, _ int) {
			n.put(t, planted(3), begins(3, noHash, `"cause":"start"`))
		},
		"the number of the first": func(t *testing.T, n *node, s []string, _ string, _ int) {
			n.put(t, planted(1), begins(1, noHash, `"void":["`+s[0]+`"]`))
		},
		"the number of one that is followed": func(t *testing.T, n *node, s []string, _ string, _ int) {
			first, _ := segment.ParseName(s[1])
			n.put(t, planted(first), begins(first, noHash, `"void":["`+s[1]+`"]`))
		},
		"a name that is none":      func(t *testing.T, n *node, _ []string, _ string, _ int) { n.put(t, "audit-1.jsonl", "x\n") },
		"a file of something else": func(t *testing.T, n *node, _ []string, _ string, _ int) { n.put(t, "a.txt", "x\n") },
		"a directory": func(t *testing.T, n *node, _ []string, _ string, _ int) {
			if err := os.Mkdir(filepath.Join(n.dir, planted(7)), 0o700); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			segments := n.segments(t)
			last := segments[len(segments)-1]
			info, err := os.Stat(filepath.Join(n.dir, last))
			if err != nil {
				t.Fatal(err)
			}
			plant(t, n, segments, last, int(info.Size()))
			for range 2 {
				if err := n.start(t); err != nil {
					t.Fatalf("the log is not started: %v", err)
				}
				if !slices.ContainsFunc(n.faults, func(f string) bool { return strings.Contains(f, "is left out") }) {
					t.Errorf("nobody is told: %q", n.faults)
				}
			}
			keys, err := evidence.ParseKeys(n.key.LogKey())
			if err != nil {
				t.Fatal(err)
			}
			r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: n.dir, Keys: keys})
			want := evidence.VerdictTampered
			if name == "a file of something else" {
				want = evidence.VerdictIncomplete
			}
			if err != nil || r.Verdict != want {
				t.Errorf("verify: %s %v, want %s", r.Verdict, err, want)
			}
		})
	}
}

func planted(first uint64) string {
	return fmt.Sprintf("audit-%020d-0b7e6a52-7c1d-4a59-9d62-3f6f6f0f7e10.jsonl", first)
}

// Where two segments both go on from what was signed, nothing says which of them is the log.
func TestALogIsNotStartedWhereTwoSegmentsGoOnFromIt(t *testing.T) {
	n := newNode(t)
	head, err := evidence.LastCheckpoint(n.dir)
	if err != nil {
		t.Fatal(err)
	}
	segments := n.segments(t)
	last := segments[len(segments)-1]
	text, err := os.ReadFile(filepath.Join(n.dir, last))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
	leaf := segment.Leaf([]byte(lines[len(lines)-1]))
	for i := range 2 {
		n.put(t, strings.Replace(planted(head.Size+1), "-0b7e", fmt.Sprintf("-%db7e", i), 1),
			begins(head.Size+1, base64.StdEncoding.EncodeToString(leaf[:]), fmt.Sprintf(`"previous_segment":%q,"previous_bytes":%d`, last, len(text))))
	}
	if err := n.start(t); err == nil || !strings.Contains(err.Error(), "begins with the same record as") {
		t.Errorf("it is started: %v", err)
	}
}

func TestRecordsThatStandThereAgainStopNoStart(t *testing.T) {
	for name, again := range map[string]func(lines []string) string{
		"the last line":           func(l []string) string { return l[len(l)-1] },
		"the last two lines":      func(l []string) string { return strings.Join(l[len(l)-2:], "") },
		"the last line and a bit": func(l []string) string { return l[len(l)-1] + `{"v":1,` },
		"the last line twice":     func(l []string) string { return l[len(l)-1] + l[len(l)-1] },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			segments := n.segments(t)
			file := filepath.Join(n.dir, segments[len(segments)-1])
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := slices.Collect(strings.Lines(string(text)))
			n.put(t, filepath.Base(file), string(text)+again(lines))
			before, err := evidence.LastCheckpoint(n.dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := n.start(t); err != nil {
				t.Fatalf("the log is not started: %v", err)
			}
			keys, err := evidence.ParseKeys(n.key.LogKey())
			if err != nil {
				t.Fatal(err)
			}
			r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: n.dir, Keys: keys})
			if err != nil || r.Fault != nil || r.IgnoredBytes != int64(len(again(lines))) || r.LastSeq <= before.Size {
				t.Errorf("%v %v, %d bytes ignored, records up to %d", err, r.Fault, r.IgnoredBytes, r.LastSeq)
			}
		})
	}
}
