package segment_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
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
	last, err := evidence.LastSigned(n.dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var tree *evidence.Log
	w, err := segment.Open(t.Context(), n.dir, segment.Options{
		NoSync: true, Covered: last.Size, Fits: evidence.Fits(n.dir, last.Head), SegmentBytes: 2 * audit.MaxRecord,
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
		names = append(names, filepath.Base(e.Path))
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
			head, err := evidence.LastSigned(n.dir, nil, nil)
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
				if !slices.ContainsFunc(n.faults, func(f string) bool { return strings.Contains(f, "left out: ") }) {
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

// end is the last segment, what is in it, and its last line.
func (n *node) end(t *testing.T) (name, text string, line []byte) {
	t.Helper()
	segments := n.segments(t)
	name = segments[len(segments)-1]
	raw, err := os.ReadFile(filepath.Join(n.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(raw)))
	return name, string(raw), []byte(strings.TrimSuffix(lines[len(lines)-1], "\n"))
}

// plantBehind puts segments behind the last record, each of which continues the chain of hashes.
func (n *node) plantBehind(t *testing.T, count int) (names []string) {
	t.Helper()
	last, text, line := n.end(t)
	seq, _, _ := segment.ParseLine(line)
	leaf := segment.Leaf(line)
	for i := range count {
		name := strings.Replace(planted(seq+1), "-0b7e", fmt.Sprintf("-%db7e", i), 1)
		forged := begins(seq+1, base64.StdEncoding.EncodeToString(leaf[:]), fmt.Sprintf(`"previous_segment":%q,"previous_bytes":%d,"cause":"start","segment":%q`, last, len(text), name))
		before := segment.Leaf([]byte(strings.TrimSuffix(forged, "\n")))
		for k := range uint64(60) { // longer than what the next start writes
			record := fmt.Sprintf(`{"v":1,"seq":%d,"type":"request","stage":"ResponseComplete","time":"2026-03-02T12:00:00Z","session":"s","id":"forged","what":{"method":"Forged"},"prev":"%s"}`, seq+2+k, base64.StdEncoding.EncodeToString(before[:]))
			before = segment.Leaf([]byte(record))
			forged += record + "\n"
		}
		n.put(t, name, forged)
		names = append(names, name)
	}
	return names
}

func (n *node) verify(t *testing.T) evidence.Report {
	t.Helper()
	keys, err := evidence.ParseKeys(n.key.LogKey())
	if err != nil {
		t.Fatal(err)
	}
	r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: n.dir, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// hasForged says whether a reader that shows what was verified shows a record that somebody planted.
func (n *node) hasForged(t *testing.T, r evidence.Report) bool {
	t.Helper()
	for _, p := range r.Parts {
		text, err := os.ReadFile(p.Path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text[:p.Bytes]), `"id":"forged"`) {
			return true
		}
	}
	return false
}

// Nothing is adopted behind the end of a log that was closed and signed, however well it continues the hashes.
func TestNothingIsAdoptedBehindASignedEnd(t *testing.T) {
	for count := 1; count <= 2; count++ {
		n := newNode(t)
		names := n.plantBehind(t, count)
		for run := range 3 {
			if err := n.start(t); err != nil {
				t.Fatalf("%d segments, start %d: %v", count, run, err)
			}
			if run > 0 {
				continue
			}
			for _, name := range names {
				if !slices.ContainsFunc(n.faults, func(f string) bool { return strings.Contains(f, name) && strings.Contains(f, "left out: ") }) {
					t.Errorf("nobody is told of %s: %q", name, n.faults)
				}
			}
		}
		if r := n.verify(t); r.Verdict != evidence.VerdictIncomplete || r.OwnCovered != r.LastSeq || n.hasForged(t, r) {
			t.Errorf("%d segments: %s %v, %d of %d records signed", count, r.Verdict, r.Fault, r.OwnCovered, r.LastSeq)
		}
	}
}

// What the next segment does not declare is no part of what the log accounts for.
func TestBytesThatAreAddedBehindASegmentAreNotSaidToBeDeclared(t *testing.T) {
	n := newNode(t)
	if err := n.start(t); err != nil {
		t.Fatal(err)
	}
	first := n.segments(t)[0]
	text, err := os.ReadFile(filepath.Join(n.dir, first))
	if err != nil {
		t.Fatal(err)
	}
	n.put(t, first, string(text)+strings.Repeat("x", 16))
	if r := n.verify(t); r.Verdict != evidence.VerdictTampered || filepath.Base(r.Fault.File) != first || r.IgnoredBytes != 0 || strings.Contains(fmt.Sprint(r.Limits), "16 bytes") {
		t.Errorf("%s %v, %d bytes ignored, %q", r.Verdict, r.Fault, r.IgnoredBytes, r.Limits)
	}
}

// Two segments, one behind the other, cannot be declared void by one that takes the place of the first: they stay out of the log all the same.
func TestAChainOfSegmentsBehindASignedEndStopsNoStart(t *testing.T) {
	n := newNode(t)
	n.plantBehind(t, 1)
	n.plantBehind(t, 1)
	for range 3 {
		if err := n.start(t); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(n.faults, func(f string) bool { return strings.Contains(f, "left out: ") }) {
			t.Errorf("nobody is told: %q", n.faults)
		}
	}
	if r := n.verify(t); r.Verdict != evidence.VerdictTampered {
		t.Errorf("until they are moved away: %s", r.Verdict)
	}
}

// Lines behind the record that closed a segment are declared with their hash.
func TestLinesBehindASignedEndAreNotAdopted(t *testing.T) {
	n := newNode(t)
	segments := n.segments(t)
	name := segments[len(segments)-1]
	text, err := os.ReadFile(filepath.Join(n.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	planted := n.plantBehind(t, 1)[0]
	forged, err := os.ReadFile(filepath.Join(n.dir, planted))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(n.dir, planted)); err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(forged)))
	lines[0] = strings.Replace(strings.Replace(lines[0], `"type":"log","stage":"LogOpen"`, `"type":"request","stage":"RequestReceived"`, 1), `"id":""`, `"id":"forged"`, 1)
	n.put(t, name, string(text)+lines[0])
	if r := n.verify(t); r.Verdict != evidence.VerdictTampered || !strings.Contains(r.Fault.Problem, "after the LogClose record") {
		t.Errorf("before the next start: %s %v", r.Verdict, r.Fault)
	}
	if err := n.start(t); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(n.faults, func(f string) bool { return strings.Contains(f, "stand behind the record that closed") }) {
		t.Errorf("nobody is told: %q", n.faults)
	}
	r := n.verify(t)
	if r.Verdict != evidence.VerdictIncomplete || r.IgnoredBytes != int64(len(lines[0])) || n.hasForged(t, r) {
		t.Errorf("%s %v, %d bytes ignored", r.Verdict, r.Fault, r.IgnoredBytes)
	}
	n.put(t, name, string(text)+strings.Replace(lines[0], "forged", "Forged", 1))
	if r := n.verify(t); r.Verdict != evidence.VerdictTampered {
		t.Errorf("other lines in their place: %s", r.Verdict)
	}
}

// A segment that branches off from the middle of what was signed, and one that declares the last segment void, take nothing from the log.
func TestAWellFormedSegmentWithinTheLogStopsNoStart(t *testing.T) {
	for name, log := range map[string]string{
		"from the middle of the last segment":        `"previous_segment":%[1]q,"previous_bytes":%[2]d`,
		"in place of the last segment":               `"void":[%[1]q]`,
		"in place of the last segment, well chained": "",
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			segments := n.segments(t)
			last := segments[len(segments)-1]
			text, err := os.ReadFile(filepath.Join(n.dir, last))
			if err != nil {
				t.Fatal(err)
			}
			lines := slices.Collect(strings.Lines(string(text)))
			first, _ := segment.ParseName(last)
			if strings.HasPrefix(name, "from") {
				leaf := segment.Leaf([]byte(strings.TrimSuffix(lines[0], "\n")))
				n.put(t, planted(first+1), begins(first+1, base64.StdEncoding.EncodeToString(leaf[:]), fmt.Sprintf(log, last, len(lines[0]))))
			} else if log != "" {
				n.put(t, planted(first), begins(first, noHash, fmt.Sprintf(log, last)))
			} else { // all of it, with another session
				changed := strings.Replace(string(text), `"log":{`, `"log":{"void":["`+last+`"],`, 1)
				n.put(t, planted(first), changed)
			}
			if err := n.start(t); err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(n.faults, func(f string) bool { return strings.Contains(f, "left out: ") }) {
				t.Errorf("nobody is told: %q", n.faults)
			}
		})
	}
}

// What the proxy did not write is named, whatever name it has, and takes no part. What looks as if it had not written it to the end is removed.
func TestEveryEntryThatIsNotTheLogsIsNamed(t *testing.T) {
	n := newNode(t)
	names := []string{planted(9999) + ".gz", planted(8888), ".checkpoints-x", ".segment-1", "AUDIT-1.jsonl", "notes"}
	left := []string{".checkpoints-1", ".start-18446744073709551615"}
	for _, name := range slices.Concat(names, left) {
		n.put(t, name, "x")
	}
	before, err := evidence.LastSigned(n.dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.start(t); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !slices.ContainsFunc(n.faults, func(f string) bool { return strings.Contains(f, name) && strings.Contains(f, "left out: ") }) {
			t.Errorf("nobody is told of %s: %q", name, n.faults)
		}
	}
	for _, name := range left {
		if _, err := os.Lstat(filepath.Join(n.dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	if len(n.faults) > len(names) {
		t.Errorf("more is told than there is: %q", n.faults)
	}
	if after, err := evidence.LastSigned(n.dir, nil, nil); err != nil || after.Size <= before.Size {
		t.Errorf("%d records are signed, before were %d, %v", after.Size, before.Size, err)
	}
}

// Behind a crash, where two segments both go on from what was signed, nothing says which of them is the log.
func TestALogIsNotStartedWhereTwoSegmentsGoOnFromIt(t *testing.T) {
	n := newNode(t)
	n.crash(t, 2)
	n.plantBehind(t, 2)
	if err := n.start(t); err == nil || !strings.Contains(err.Error(), "begins with the same record as") {
		t.Errorf("it is started: %v", err)
	}
}

// crash cuts off so many records of the last segment, LogClose among them, and the checkpoints of them, as if the process had been killed.
func (n *node) crash(t *testing.T, records int) {
	t.Helper()
	segments := n.segments(t)
	last := segments[len(segments)-1]
	text, err := os.ReadFile(filepath.Join(n.dir, last))
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(text)))
	first, _ := segment.ParseName(last)
	size := first - 1 + uint64(len(lines)-records)
	n.put(t, last, strings.Join(lines[:len(lines)-records], ""))
	own, err := os.ReadFile(filepath.Join(n.dir, evidence.CheckpointFile))
	if err != nil {
		t.Fatal(err)
	}
	var kept []byte
	for c, err := range evidence.Notes(strings.NewReader(string(own))) {
		if err != nil {
			t.Fatal(err)
		}
		if head, err := evidence.Inspect(c.Raw); err != nil || head.Size > size {
			break
		}
		kept = append(append(kept, c.Raw...), '\n')
	}
	n.put(t, evidence.CheckpointFile, string(kept))
}

// What was not signed when a process was killed is taken over, and the log says how much that was.
func TestAStartSaysHowManyUnsignedRecordsItTakesOver(t *testing.T) {
	n := newNode(t)
	n.crash(t, 1)
	head, err := evidence.LastSigned(n.dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for _, name := range n.segments(t) {
		text, err := os.ReadFile(filepath.Join(n.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			last, _, _ = segment.ParseLine([]byte(strings.TrimSuffix(line, "\n")))
		}
	}
	if last <= head.Size {
		t.Fatalf("%d records, %d signed", last, head.Size)
	}
	if err := n.start(t); err != nil {
		t.Fatal(err)
	}
	r := n.verify(t)
	if want := fmt.Sprintf("Changes to %d records, from %d to %d, before they were signed", last-head.Size, head.Size+1, last); r.Verdict != evidence.VerdictIncomplete || !strings.Contains(strings.Join(r.Limits, " "), want) {
		t.Errorf("%s %v: no %q in %q", r.Verdict, r.Fault, want, r.Limits)
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
			before, err := evidence.LastSigned(n.dir, nil, nil)
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

// A file that the log declares void is never anything else: it is named at the start unless it is as a killed start leaves it, and nobody can fill it later.
func TestNothingCanBePutIntoAVoidSegment(t *testing.T) {
	for name, c := range map[string]struct {
		ahead   int // of the last record
		content string
		isNamed bool // at the start
	}{
		"empty, of the number that is due":    {1, "", false},
		"of the number that is due":           {1, "x", true},
		"behind the record that ends the log": {2, "half a line", true},
		"empty, of a number within the log":   {-2, "", true},
		"empty, of a number far ahead":        {970, "", true},
		"a line, of a number far ahead":       {970, "x\n", true},
	} {
		for later, fill := range map[string]func(name, content string) string{
			"records":      func(name, _ string) string { first, _ := segment.ParseName(name); return begins(first, noHash, "") },
			"a byte more":  func(_, content string) string { return content + "y" },
			"another text": func(_, content string) string { return strings.Repeat("z", len(content)) },
		} {
			if later == "another text" && c.content == "" {
				continue
			}
			n := newNode(t)
			void := planted(uint64(int(n.verify(t).LastSeq) + c.ahead)) // #nosec G115 -- small
			n.put(t, void, c.content)
			tells := func(text string) bool {
				return slices.ContainsFunc(n.faults, func(f string) bool { return strings.Contains(f, void) && strings.Contains(f, text) })
			}
			if err := n.start(t); err != nil {
				t.Fatal(err)
			}
			if tells("left out: ") != c.isNamed {
				t.Errorf("%s: named is %t: %q", name, !c.isNamed, n.faults)
			}
			if r := n.verify(t); r.Verdict != evidence.VerdictIncomplete || !slices.Contains(r.Void, void) || len(r.Limits) != len(newNode(t).verify(t).Limits) {
				t.Errorf("%s: %s %v, void %q", name, r.Verdict, r.Fault, r.Void)
			}
			n.put(t, void, fill(void, c.content))
			if r := n.verify(t); r.Verdict != evidence.VerdictTampered || later != "records" && filepath.Base(r.Fault.File) != void {
				t.Errorf("%s, %s put into it later: %s %v", name, later, r.Verdict, r.Fault)
			}
			n.faults = nil
			if err := n.start(t); err != nil {
				t.Fatalf("%s, %s put into it later: %v", name, later, err)
			}
			if !tells("changed since") {
				t.Errorf("%s, %s put into it later, and nobody is told: %q", name, later, n.faults)
			}
			if r := n.verify(t); r.Verdict != evidence.VerdictTampered || n.hasForged(t, r) {
				t.Errorf("%s, %s, after another start: %s", name, later, r.Verdict)
			}
			n.put(t, void, c.content)
			if r := n.verify(t); r.Verdict != evidence.VerdictIncomplete {
				t.Errorf("%s, put back: %s %v", name, r.Verdict, r.Fault)
			}
		}
	}
}

// One segment declares 32 files without a record; that there are more is told.
func TestMoreFilesWithoutARecordThanASegmentDeclaresAreTold(t *testing.T) {
	n := newNode(t)
	for i := range 40 {
		n.put(t, planted(uint64(900_000+i)), "") //nolint:gosec // small
	}
	if err := n.start(t); err != nil {
		t.Fatal(err)
	}
	want := "left out: 40 files without a record: the next segment declares 32 of them"
	if !slices.ContainsFunc(n.faults, func(f string) bool { return strings.Contains(f, want) }) {
		t.Errorf("nobody is told of them: %q", n.faults)
	}
}
