package evidence

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestALogWithAnOutsideCheckpointOfItsEndIsOK(t *testing.T) {
	m := sample(t)
	r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}})
	if r.Verdict != VerdictOK || r.Records != 15 || r.LastSeq != 15 || r.OutsideCovered != 15 || r.Checkpoints != 5 || r.Segments != 3 || r.Origin != origin {
		t.Errorf("got %+v, fault %v", r, r.Fault)
	}
}

func TestWithoutAnOutsideCheckpointALogIsIncompleteAndTheRollbackNamed(t *testing.T) {
	m := sample(t)
	r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys()})
	if r.Verdict != VerdictIncomplete || r.OwnCovered != 15 || !strings.Contains(strings.Join(r.Limits, " "), "rollback") {
		t.Errorf("got %+v, fault %v", r, r.Fault)
	}
	if r := verify(t, VerifyOptions{Dir: m.dir}); r.Verdict != VerdictIncomplete || !strings.Contains(r.Incomplete[0], "no verifier key") {
		t.Errorf("without keys: %+v", r)
	}
}

// rewrite puts other content into a directory.
func rewrite(t *testing.T, dir string, content map[string][]byte) {
	t.Helper()
	for name := range files(t, dir) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range content {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func segmentNames(content map[string][]byte) []string {
	var out []string
	for name := range content {
		if name != CheckpointFile {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func TestEverySingleBitEditIsFound(t *testing.T) {
	m := small(t)
	outside := m.outside()
	original := files(t, m.dir)
	edits := 0
	for name, text := range original {
		file := filepath.Join(m.dir, name)
		for bit := range len(text) * 8 {
			if !IsTried(bit, 29) {
				continue
			}
			edited := bytes.Clone(text)
			edited[bit/8] ^= 1 << (bit % 8)
			if err := os.WriteFile(file, edited, 0o600); err != nil {
				t.Fatal(err)
			}
			edits++
			r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{outside}})
			if r.Verdict == VerdictOK || name != CheckpointFile && (r.Verdict != VerdictTampered || r.Fault == nil) {
				t.Fatalf("%s bit %d: %s", name, bit, r.Verdict)
			}
			if name != CheckpointFile && bit%3 == 0 { // a local checkpoint of the end is enough
				if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys()}); r.Verdict != VerdictTampered {
					t.Fatalf("%s bit %d without an outside checkpoint: %s", name, bit, r.Verdict)
				}
			}
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d edits", edits)
}

func TestEveryTruncationIsFound(t *testing.T) {
	m := sample(t)
	outside := m.outside()
	original := files(t, m.dir)
	for _, name := range segmentNames(original) {
		text := original[name]
		for length := range text {
			if !IsTried(length, 13) {
				continue
			}
			if err := os.WriteFile(filepath.Join(m.dir, name), text[:length], 0o600); err != nil {
				t.Fatal(err)
			}
			for _, given := range [][]string{nil, {outside}} {
				if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: given}); r.Verdict != VerdictTampered {
					t.Fatalf("%s cut to %d bytes: %s %v", name, length, r.Verdict, r.Incomplete)
				}
			}
		}
		if err := os.WriteFile(filepath.Join(m.dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDeletedSwappedAndDoubledRecordsAndSegmentsAreFound(t *testing.T) {
	m := sample(t)
	outside := m.outside()
	original := files(t, m.dir)
	names := segmentNames(original)
	var places [][2]int // segment, line
	lines := map[string][][]byte{}
	for i, name := range names {
		lines[name] = bytes.SplitAfter(bytes.TrimSuffix(original[name], []byte("\n")), []byte("\n"))
		last := len(lines[name]) - 1
		lines[name][last] = append(bytes.Clone(lines[name][last]), '\n')
		for k := range lines[name] {
			places = append(places, [2]int{i, k})
		}
	}
	join := func(edit func(lines map[string][][]byte)) map[string][]byte {
		edited := map[string][][]byte{}
		for name, l := range lines {
			edited[name] = slices.Clone(l)
		}
		edit(edited)
		out := map[string][]byte{CheckpointFile: original[CheckpointFile]}
		for name, l := range edited {
			out[name] = bytes.Join(l, nil)
		}
		return out
	}
	tries := 0
	try := func(what string, content map[string][]byte) {
		t.Helper()
		tries++
		rewrite(t, m.dir, content)
		for _, given := range [][]string{nil, {outside}} {
			if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: given}); r.Verdict != VerdictTampered || r.Fault.Problem == "" {
				t.Fatalf("%s: %s %v", what, r.Verdict, r.Incomplete)
			}
		}
	}
	for i, a := range places {
		if !IsTried(i, 1) {
			continue
		}
		nameA := names[a[0]]
		try("delete", join(func(l map[string][][]byte) { l[nameA] = slices.Delete(l[nameA], a[1], a[1]+1) }))
		for j, b := range places {
			if !IsTried(i/7+j, 1) { // with -short, other pairs for each
				continue
			}
			nameB := names[b[0]]
			try("double", join(func(l map[string][][]byte) { l[nameB] = slices.Insert(l[nameB], b[1], lines[nameA][a[1]]) }))
		}
		for j, b := range places[i+1:] {
			if !IsTried(i/7+j, 1) {
				continue
			}
			nameB := names[b[0]]
			try("swap", join(func(l map[string][][]byte) { l[nameA][a[1]], l[nameB][b[1]] = l[nameB][b[1]], l[nameA][a[1]] }))
		}
	}
	for i, a := range names {
		try("delete segment", join(func(l map[string][][]byte) { delete(l, a) }))
		try("double segment", join(func(l map[string][][]byte) { l[strings.Replace(a, "-0000-", "-1111-", 1)] = l[a] }))
		for _, b := range names[i+1:] {
			try("swap segments", join(func(l map[string][][]byte) { l[a], l[b] = l[b], l[a] }))
			try("swap names", join(func(l map[string][][]byte) { delete(l, a); delete(l, b) }))
		}
	}
	t.Logf("%d tries", tries)
}

// forge rewrites all records from one on, with numbers and hashes as they should be: what somebody without the key can do.
func forge(t *testing.T, m *madeLog, from uint64) {
	t.Helper()
	content := files(t, m.dir)
	var prev string
	seq := uint64(0)
	for _, name := range segmentNames(content) {
		var out []byte
		for line := range bytes.Lines(content[name]) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			if seq++; seq >= from {
				line = bytes.Replace(line, []byte(`"Mkdir"`), []byte(`"Rmdir"`), 1)
				at := len(line) - 46
				line = append(append(bytes.Clone(line[:at]), prev...), `"}`...)
			}
			prev = Leaf(line).String()
			out = append(append(out, line...), '\n')
		}
		content[name] = out
	}
	rewrite(t, m.dir, content)
}

func TestRecordsWhoseHashesWereAllMadeAnewDoNotFitTheCheckpoint(t *testing.T) {
	for from := uint64(2); from <= 14; from++ {
		m := sample(t)
		outside := m.outside()
		forge(t, m, from)
		if r := verify(t, VerifyOptions{Dir: m.dir}); r.Fault != nil {
			t.Fatalf("the forgery is a bad one: %v", r.Fault)
		}
		r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys()})
		if r.Verdict != VerdictTampered || !strings.Contains(r.Fault.Problem, "signs") || r.Fault.Seq > from+1 {
			t.Errorf("from record %d: %s %v", from, r.Verdict, r.Fault)
		}
		if err := os.Remove(filepath.Join(m.dir, CheckpointFile)); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{outside}}); r.Verdict != VerdictTampered {
			t.Errorf("from record %d, without the checkpoints beside the log: %s", from, r.Verdict)
		}
	}
}

func TestARollbackIsFoundWithAnOutsideCheckpointAndNamedAsALimitWithout(t *testing.T) {
	m := newLog(t, Options{})
	m.begin(0)
	m.records(3)
	m.checkpoint()
	before := files(t, m.dir)
	m.records(4)
	m.checkpoint()
	outside := m.outside()
	m.close()
	rewrite(t, m.dir, before)
	r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys()})
	if r.Verdict != VerdictIncomplete || !strings.Contains(strings.Join(r.Limits, " "), "A rollback: log and checkpoints") {
		t.Errorf("without: %+v", r)
	}
	r = verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{outside}})
	if r.Verdict != VerdictTampered || r.Fault.Seq != 5 || r.Fault.File != outside {
		t.Errorf("with: %s %v", r.Verdict, r.Fault)
	}
}

func TestFailedWritesAreDeclaredAndNotAFault(t *testing.T) {
	m := newLog(t, Options{})
	m.begin(0)
	m.records(2)
	m.raw([]byte(`{"v":1,"seq":4,"ty`)) // torn
	m.begin(18)
	m.records(1)
	void := append(m.line("request", "ResponseComplete", ""), '\n') // whole, never acknowledged
	m.raw(void)
	m.begin(int64(len(void)))
	m.records(1)
	// a segment that was given up with its first record in it, and one that got none
	given := m.name()
	failed := append(m.line("log", "LogOpen", `,"log":{"cause":"failure"}`), '\n')
	if err := os.WriteFile(filepath.Join(m.dir, given), failed, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := m.name()
	if err := os.WriteFile(filepath.Join(m.dir, empty), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m.begin(0, given, empty)
	m.records(1)
	m.end()
	m.close()
	o := VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}}
	r := verify(t, o)
	if want := int64(18 + len(void) + len(failed)); r.Verdict != VerdictOK || r.IgnoredBytes != want {
		t.Errorf("%s, fault %v, %v; %d bytes ignored, want %d", r.Verdict, r.Fault, r.Incomplete, r.IgnoredBytes, want)
	}
	again := &madeLog{tb: t, dir: m.dir, key: m.key, clock: m.clock}
	again.open(Options{}) // the writer's own reading agrees
	if size, _, _ := again.log.Root(); size != m.seq {
		t.Errorf("read again: %d records, want %d", size, m.seq)
	}
	again.close()
	m.file = filepath.Join(m.dir, segmentNames(files(t, m.dir))[0])
	m.raw([]byte("more"))
	if r := verify(t, o); r.Verdict != VerdictTampered {
		t.Errorf("with more behind the last record of a segment than was declared: %s", r.Verdict)
	}
}
