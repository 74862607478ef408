package evidence

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func paths(t *testing.T, m *madeLog) (segments []string, checkpoints string) {
	t.Helper()
	for _, name := range segmentNames(files(t, m.dir)) {
		segments = append(segments, filepath.Join(m.dir, name))
	}
	return segments, filepath.Join(m.dir, CheckpointFile)
}

func TestCopiedFilesAreVerifiedInAnyOrder(t *testing.T) {
	m := sample(t)
	segments, checkpoints := paths(t, m)
	all := []string{segments[2], checkpoints, segments[0], segments[1]}
	r := verify(t, VerifyOptions{Files: all, Keys: m.keys(), Outside: []string{m.outside()}})
	if r.Verdict != VerdictOK || r.Records != 15 {
		t.Errorf("got %+v, fault %v", r, r.Fault)
	}
}

func TestSegmentsMissingAmongCopiedFilesAreNamed(t *testing.T) {
	m := sample(t)
	segments, checkpoints := paths(t, m)
	outside := []string{m.outside()}
	for name, c := range map[string]struct {
		files []string
		want  Range
	}{
		"the first":  {[]string{segments[1], segments[2], checkpoints}, Range{1, 5}},
		"one within": {[]string{segments[0], segments[2], checkpoints}, Range{6, 10}},
		"the last":   {[]string{segments[0], segments[1], checkpoints}, Range{11, 15}},
	} {
		t.Run(name, func(t *testing.T) {
			r := verify(t, VerifyOptions{Files: c.files, Keys: m.keys(), Outside: outside})
			if r.Verdict != VerdictIncomplete || !slices.Contains(r.Missing, c.want) {
				t.Errorf("%s, missing %v, fault %v; want %v", r.Verdict, r.Missing, r.Fault, c.want)
			}
		})
	}
}

func TestFilesThatAreNotALogAreRefused(t *testing.T) {
	m := sample(t)
	segments, _ := paths(t, m)
	text := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(text, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]VerifyOptions{
		"nothing":                      {},
		"a directory and files":        {Dir: m.dir, Files: segments},
		"a directory that is missing":  {Dir: filepath.Join(m.dir, "x")},
		"a directory without segments": {Dir: t.TempDir()},
		"a segment twice":              {Files: append([]string{segments[0]}, segments...)},
		"a file of another name":       {Files: []string{segments[0], text}},
		"an outside file that is none": {Dir: m.dir, Keys: m.keys(), Outside: []string{text}},
		"an outside file of others":    {Dir: m.dir, Keys: m.keys(), Outside: []string{sampleOf(t, "other").outside()}},
		"an outside file, no keys":     {Dir: m.dir, Outside: []string{m.outside()}},
	} {
		t.Run(name, func(t *testing.T) {
			if r, err := Verify(context.Background(), o); err == nil {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// sampleOf is a log of another origin.
func sampleOf(t *testing.T, name string) *madeLog {
	m := newLog(t, Options{Keys: []*Key{newKey(t, OriginPrefix+name)}})
	m.begin(0)
	m.end()
	m.close()
	return m
}

func TestALogOfAnotherOriginIsRefused(t *testing.T) {
	m := sample(t)
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Origin: OriginPrefix + "node-2"}); r.Verdict != VerdictTampered || !strings.Contains(r.Fault.Problem, "is of log") {
		t.Errorf("%s %v", r.Verdict, r.Fault)
	}
}

// prune removes the first segments as the writer does.
func (m *madeLog) prune(t *testing.T, segments []string, last string, doWrite bool) {
	t.Helper()
	seq := map[string]uint64{"5": 5, "10": 10}[last]
	if err := m.log.Prune(context.Background(), seq); err != nil {
		t.Fatal(err)
	}
	if doWrite {
		m.write(m.line("log", "LogPrune", `,"log":{"pruned":{"segments":[],"first_seq":1,"last_seq":`+last+`}}`))
	}
	for _, s := range segments {
		if err := os.Remove(s); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAPrunedLogIsVerifiedFromItsStart(t *testing.T) {
	m := sample(t)
	m.open(Options{})
	segments, _ := paths(t, m)
	m.begin(0)
	m.prune(t, segments[:1], "5", true)
	m.checkpoint()
	m.prune(t, segments[1:2], "10", true)
	m.end()
	m.close()
	outside := []string{m.outside()}
	r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: outside})
	if r.Verdict != VerdictIncomplete || r.PrunedUntil != 10 || r.FirstSeq != 11 || r.OutsideCovered != r.LastSeq || len(r.Incomplete) != 1 {
		t.Errorf("got %+v, fault %v", r, r.Fault)
	}
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: outside, AllowPruned: true}); r.Verdict != VerdictOK {
		t.Errorf("with pruned records allowed: %+v", r)
	}
	again := &madeLog{tb: t, dir: m.dir, key: m.key, clock: m.clock}
	again.open(Options{}) // the writer's own reading agrees
	if size, _, _ := again.log.Root(); size != m.seq {
		t.Errorf("read again: %d records, want %d", size, m.seq)
	}
	again.close()

	start := filepath.Join(m.dir, StartFile)
	text, err := os.ReadFile(start)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		for bit := range 8 {
			if !IsTried(i*8+bit, 13) {
				continue
			}
			edited := []byte(string(text))
			edited[i] ^= 1 << bit
			if err := os.WriteFile(start, edited, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := Verify(context.Background(), VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: outside, AllowPruned: true})
			if err != nil || r.Verdict != VerdictTampered {
				t.Fatalf("start file, byte %d bit %d: %v %s", i, bit, err, r.Verdict)
			}
		}
	}
}

func TestSegmentsRemovedWithoutARecordAreAFault(t *testing.T) {
	m := sample(t)
	m.open(Options{})
	segments, _ := paths(t, m)
	m.begin(0)
	m.prune(t, segments[:1], "5", false) // the start is right, and the log does not say so
	m.end()
	m.close()
	r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}, AllowPruned: true})
	if r.Verdict != VerdictTampered || !strings.Contains(r.Fault.Problem, "no LogPrune record") {
		t.Errorf("%s %v", r.Verdict, r.Fault)
	}
	if err := os.Remove(filepath.Join(m.dir, StartFile)); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), AllowPruned: true}); r.Verdict != VerdictTampered {
		t.Errorf("without a start: %s", r.Verdict)
	}
	if _, err := Open(context.Background(), Options{Dir: m.dir, Keys: []*Key{m.key}}); !IsFault(err) {
		t.Errorf("the writer goes on with it: %v", err)
	}
}

func TestPruningThatWasCutShortIsNoFault(t *testing.T) {
	m := sample(t)
	m.open(Options{})
	segments, _ := paths(t, m)
	m.begin(0)
	m.prune(t, segments[:1], "10", true) // both were meant
	m.end()
	m.close()
	r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}, AllowPruned: true})
	if r.Verdict != VerdictIncomplete || r.FirstSeq != 6 || r.PrunedUntil != 5 || len(r.Incomplete) != 1 || !strings.HasPrefix(r.Incomplete[0], "records 6 to 10 are still present, but the file start counts them as removed") {
		t.Errorf("got %+v, fault %v", r, r.Fault)
	}
	text, err := os.ReadFile(segments[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segments[1], []byte(strings.Replace(string(text), "Mkdir", "Rmdir", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), AllowPruned: true}); r.Verdict != VerdictTampered {
		t.Errorf("a change in what was to be pruned: %s", r.Verdict)
	}
}
