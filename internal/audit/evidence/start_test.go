package evidence

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// treeAt is the tree of the first records of a log, which whoever can read the log can make.
func treeAt(t *testing.T, dir string, size uint64) span {
	t.Helper()
	tree, _, err := spanOf(context.Background(), dir, Head{}, size, size)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func writeFile(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// emptied is a log of which nothing is left but the tree of all that it held.
func emptied(t *testing.T, m *madeLog) {
	t.Helper()
	tree := treeAt(t, m.dir, m.seq)
	segments, _ := paths(t, m)
	for _, s := range segments {
		if err := os.Remove(s); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(m.dir, StartFile), formatStart(tree))
	writeFile(t, filepath.Join(m.dir, m.name()), nil)
}

func TestTheTreeOfALogIsNoLog(t *testing.T) {
	m := sample(t)
	outside := []string{m.outside()}
	emptied(t, m)
	for name, allow := range map[string]bool{"whole": false, "pruned": true} {
		r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: outside, AllowPruned: allow})
		if r.Verdict != VerdictTampered {
			t.Errorf("%s: %s with %d records", name, r.Verdict, r.Records)
		}
	}
	all, checkpoints := paths(t, m)
	if r := verify(t, VerifyOptions{Files: append(all, checkpoints), Keys: m.keys(), Outside: outside, AllowPruned: true}); r.Verdict != VerdictIncomplete || len(r.Missing) == 0 {
		t.Errorf("copied files: %s, missing %v", r.Verdict, r.Missing)
	}
	if _, err := Open(context.Background(), Options{Dir: m.dir, Keys: []*Key{m.key}}); !IsFault(err) {
		t.Errorf("the log is continued: %v", err)
	}
}

// rewritten is a log of which every record was written anew, and which says that the first of them were pruned. Its tree says what was signed.
func rewritten(t *testing.T, m *madeLog, more int) *madeLog {
	t.Helper()
	forged := &madeLog{tb: t, dir: m.dir, key: m.key, log: m.log, clock: m.clock}
	size := m.seq
	tree := treeAt(t, m.dir, size)
	segments, _ := paths(t, m)
	for _, s := range segments {
		if err := os.Remove(s); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(m.dir, StartFile), formatStart(tree))
	forged.log = &Log{} // takes the leaves, and signs nothing
	forged.seq = 5
	forged.begin(0)
	forged.write(forged.line("log", "LogPrune", `,"log":{"pruned":{"segments":[],"first_seq":1,"last_seq":5}}`))
	for forged.seq < size {
		forged.write(forged.line("request", "ResponseComplete", `,"what":{"method":"Forged"}`))
	}
	if more > 0 {
		forged.begin(0)
		forged.records(more - 1)
	}
	return forged
}

func TestRecordsThatOnlyTheTreeOfPrunedOnesCoversAreHeldByNothing(t *testing.T) {
	for _, more := range []int{0, 1, 3} {
		t.Run(fmt.Sprintf("%d records behind them", more), func(t *testing.T) {
			m := sample(t)
			outside := []string{m.outside()}
			rewritten(t, m, more)
			r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: outside, AllowPruned: true})
			if r.Verdict != VerdictTampered {
				t.Errorf("%s, %d records covered from outside", r.Verdict, r.OutsideCovered)
			}
			all, _ := paths(t, m)
			r = verify(t, VerifyOptions{Files: all, Keys: m.keys(), Outside: outside, AllowPruned: true})
			if r.Verdict != VerdictIncomplete || r.OutsideCovered != 0 {
				t.Errorf("copied files: %s, %d records covered from outside", r.Verdict, r.OutsideCovered)
			}
			if _, err := Open(context.Background(), Options{Dir: m.dir, Keys: []*Key{m.key}}); !IsFault(err) {
				t.Errorf("the log is continued: %v", err)
			}
		})
	}
}

// A checkpoint that nobody signed would let the writer sign what is held by nothing else.
func TestAForgedCheckpointDoesNotHoldRecordsBeforeTheTree(t *testing.T) {
	m := sample(t)
	forged := rewritten(t, m, 2)
	tree, err := readStart(filepath.Join(m.dir, StartFile))
	if err != nil {
		t.Fatal(err)
	}
	content := files(t, m.dir)[filepath.Base(forged.file)]
	for _, line := range strings.Split(strings.TrimSuffix(string(content), "\n"), "\n") {
		tree.append(Leaf([]byte(line)))
	}
	raw, err := sign(Head{origin, tree.end, tree.root()}, m.clock, newKey(t, origin))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(m.dir, CheckpointFile), append(raw, '\n'))
	if _, err := Open(context.Background(), Options{Dir: m.dir, Keys: []*Key{m.key}}); !IsFault(err) {
		t.Errorf("the log is continued: %v", err)
	}
}

func TestPruningSignsWhatHoldsTheRecordsThatAreStillThere(t *testing.T) {
	m := sample(t)
	m.open(Options{})
	m.begin(0) // no checkpoint has it yet
	if err := m.log.Prune(context.Background(), 15); err != nil {
		t.Fatal(err)
	}
	r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys()})
	if r.Verdict != VerdictIncomplete || r.OwnCovered != 16 {
		t.Errorf("%s, %d records signed, fault %v", r.Verdict, r.OwnCovered, r.Fault)
	}
	if err := m.log.Prune(context.Background(), 16); err == nil {
		t.Error("the last record is pruned")
	}
	m.write(m.line("log", "LogPrune", `,"log":{"pruned":{"segments":[],"first_seq":1,"last_seq":5}}`))
	m.checkpoint()
	m.close()
	segments, _ := paths(t, m)
	if err := os.Remove(segments[0]); err != nil {
		t.Fatal(err)
	}
	m.open(Options{}) // killed while it removed them
	m.close()
}
