package evidence

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// treeAt is the tree of the first records of a log, which whoever can read the log can make.
func treeAt(t *testing.T, dir string, size uint64) leafRange {
	t.Helper()
	tree, _, err := leafRangeOf(context.Background(), dir, Head{}, size, size)
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
	if m.log.Removed() != 5 {
		t.Errorf("records up to %d were to be removed", m.log.Removed())
	}
	m.close()
}

// pruneTen removes the first ten records of a log in order.
func pruneTen(t *testing.T, m *madeLog) {
	t.Helper()
	m.open(Options{})
	segments, _ := paths(t, m)
	m.begin(0)
	m.prune(t, segments[:2], "10", true)
	m.end()
	m.close()
}

// Of records that were pruned, the roots of some subtrees are known, and nothing else: what was signed of them elsewhere is compared with these, or said not to be.
func TestWhatWasSignedElsewhereOfPrunedRecordsIsComparedOrNamed(t *testing.T) {
	m := sample(t)
	full := filepath.Join(t.TempDir(), "full")
	if err := os.CopyFS(full, os.DirFS(m.dir)); err != nil {
		t.Fatal(err)
	}
	pruneTen(t, m)
	last, err := os.ReadFile(m.outside())
	if err != nil {
		t.Fatal(err)
	}
	newest, err := Inspect(last)
	if err != nil {
		t.Fatal(err)
	}
	witness := newKey(t, "example.com/witness")
	another := newKey(t, "example.org/witness")
	both := keysOf(t, m.key.LogKey(), witness.WitnessKey(), another.WitnessKey())
	cosigned, err := sign(newest, m.clock.Add(time.Hour), m.key, witness)
	if err != nil {
		t.Fatal(err)
	}
	for size := range uint64(11) {
		tree := treeAt(t, full, size)
		for _, isTrue := range []bool{true, false} {
			head := Head{Origin: newest.Origin, Size: size, Root: tree.root()}
			if !isTrue {
				head.Root[0] ^= 1
			}
			signedAt := func(at time.Time, keys ...*Key) []byte {
				note, err := sign(head, at, keys...)
				if err != nil {
					t.Fatal(err)
				}
				return note
			}
			signed := func(keys ...*Key) []byte { return signedAt(m.clock, keys...) }
			given := func(notes ...[]byte) []string {
				file := filepath.Join(t.TempDir(), "outside")
				writeFile(t, file, slices.Concat(notes...))
				return []string{file}
			}
			isKnown := size == 0 || size == 8 || size == 10
			want, witnessed := VerdictOK, VerdictOK
			switch {
			case (isKnown || size == 3) && !isTrue: // the log's own checkpoints have another one of 3
				want, witnessed = VerdictTampered, VerdictTampered
			case !isKnown:
				want = VerdictIncomplete
			}
			r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: given(signed(m.key), last), AllowPruned: true})
			if r.Verdict != want || (want == VerdictIncomplete) != strings.Contains(strings.Join(r.Incomplete, " "), "nothing shows that this log continues that one") {
				t.Errorf("of %d records, %t: %s %v, %q", size, isTrue, r.Verdict, r.Fault, r.Incomplete)
			}
			r = verify(t, VerifyOptions{Dir: m.dir, Keys: both, Outside: given(signed(m.key), cosigned), AllowPruned: true, RequireWitness: true})
			if r.Verdict != want {
				t.Errorf("of %d records, %t, before one that a witness saw: %s %v, %q", size, isTrue, r.Verdict, r.Fault, r.Incomplete)
			}
			r = verify(t, VerifyOptions{Dir: m.dir, Keys: both, Outside: given(signed(m.key, another), cosigned), AllowPruned: true, RequireWitness: true})
			if r.Verdict != want {
				t.Errorf("of %d records, %t, which another witness saw than the later one: %s %v, %q", size, isTrue, r.Verdict, r.Fault, r.Incomplete)
			}
			r = verify(t, VerifyOptions{Dir: m.dir, Keys: both, Outside: given(signed(m.key, another, witness), cosigned), AllowPruned: true, RequireWitness: true})
			if r.Verdict != witnessed {
				t.Errorf("of %d records, %t, which both witnesses saw: %s %v, %q", size, isTrue, r.Verdict, r.Fault, r.Incomplete)
			}
			r = verify(t, VerifyOptions{Dir: m.dir, Keys: both, Outside: given(signed(m.key, witness), last), AllowPruned: true})
			if r.Verdict != want {
				t.Errorf("of %d records, %t, which a witness saw, and no later one: %s %v, %q", size, isTrue, r.Verdict, r.Fault, r.Incomplete)
			}
			r = verify(t, VerifyOptions{Dir: m.dir, Keys: both, Outside: given(signed(m.key, witness), cosigned), AllowPruned: true, RequireWitness: true})
			if r.Verdict != witnessed || witnessed == VerdictOK && !isKnown != strings.Contains(strings.Join(r.Limits, " "), "their hashes are not known") {
				t.Errorf("of %d records, %t, with a witness: %s %v, %q", size, isTrue, r.Verdict, r.Fault, r.Limits)
			}
			// It was told to begin anew, with another log.
			r = verify(t, VerifyOptions{Dir: m.dir, Keys: both, Outside: given(signedAt(m.clock.Add(2*time.Hour), m.key, witness), cosigned), AllowPruned: true, RequireWitness: true})
			if r.Verdict != want {
				t.Errorf("of %d records, %t, which a witness saw after the larger one: %s %v, %q", size, isTrue, r.Verdict, r.Fault, r.Incomplete)
			}
			// So it was, and then saw this one from its beginning.
			if size > 1 {
				none := treeAt(t, full, 0)
				first, err := sign(Head{Origin: origin, Root: none.root()}, m.clock.Add(time.Minute), m.key, witness)
				if err != nil {
					t.Fatal(err)
				}
				r = verify(t, VerifyOptions{Dir: m.dir, Keys: both, Outside: given(first, signed(m.key, witness), cosigned), AllowPruned: true, RequireWitness: true})
				if r.Verdict != want {
					t.Errorf("of %d records, %t, before a witness began anew: %s %v, %q", size, isTrue, r.Verdict, r.Fault, r.Incomplete)
				}
			}
		}
	}
}

// Two logs of one size that were signed are a fork, whatever is known of their records.
func TestTwoLogsOfOneSizeAreAForkAlsoWhereTheirRecordsWerePruned(t *testing.T) {
	m := sample(t)
	pruneTen(t, m)
	outside := m.outside()
	last, err := os.ReadFile(outside)
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range []byte{1, 2} {
		head := Head{Origin: origin, Size: 9}
		head.Root[0] = root
		note, err := sign(head, m.clock, m.key)
		if err != nil {
			t.Fatal(err)
		}
		last = append(note, last...)
	}
	writeFile(t, outside, last)
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{outside}, AllowPruned: true}); r.Verdict != VerdictTampered || !strings.Contains(r.Fault.Problem, "sign different logs of 9 records") {
		t.Errorf("%s %v, %q", r.Verdict, r.Fault, r.Incomplete)
	}
}

// A file from elsewhere may hold checkpoints of other logs. What was put before a checkpoint of this log, or around it, does not make it one of these.
func TestNothingMakesACheckpointOfThisLogOneOfAnother(t *testing.T) {
	m := sample(t)
	file := m.outside()
	note, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := sign(Head{Origin: OriginPrefix + "node-10", Size: 3}, m.clock, newKey(t, OriginPrefix+"node-10"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, slices.Concat(stranger, note))
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{file}}); r.Verdict != VerdictOK || !strings.Contains(strings.Join(r.Limits, " "), "1 checkpoints of other logs") {
		t.Errorf("beside a checkpoint of another log: %s %v, %q", r.Verdict, r.Fault, r.Incomplete)
	}
	for name, before := range map[string]string{
		"three lines of a checkpoint": "x\n5\nkPI0kPI0kPI0kPI0kPI0kPI0kPI0kPI0kPI0kPI0kPI=\n", "a byte order mark": "\ufeff", "a space of no width": "\u200b", "a sign": "#", "a word": "x",
	} {
		writeFile(t, file, slices.Concat([]byte(before), note, note))
		if r, err := Verify(context.Background(), VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{file}}); err == nil {
			t.Errorf("%s: %s %q", name, r.Verdict, r.Incomplete)
		}
	}
}

// A witness that began anew would show by the later of two cosignatures on one checkpoint.
func TestACheckpointWithTwoSignaturesOfOneKeyIsRefused(t *testing.T) {
	m := sample(t)
	witness := newKey(t, "example.com/witness")
	keys := keysOf(t, m.key.LogKey(), witness.WitnessKey())
	text, err := os.ReadFile(m.outside())
	if err != nil {
		t.Fatal(err)
	}
	head, err := Inspect(text)
	if err != nil {
		t.Fatal(err)
	}
	once, err := sign(head, m.clock, m.key, witness)
	if err != nil {
		t.Fatal(err)
	}
	again, err := sign(head, m.clock.Add(time.Hour), m.key, witness)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "outside")
	check := func(note []byte) error {
		writeFile(t, file, note)
		_, err := Verify(context.Background(), VerifyOptions{Dir: m.dir, Keys: keys, Outside: []string{file}})
		return err
	}
	if err := check(once); err != nil {
		t.Fatal(err)
	}
	_, first, _ := strings.Cut(string(once), "\n\n")
	_, second, _ := strings.Cut(string(again), "\n\n")
	seen := 0
	for line := range strings.Lines(second) {
		if line == "\n" || strings.Contains(first, line) {
			continue
		}
		seen++
		if err := check([]byte(strings.TrimRight(string(once), "\n") + "\n" + line)); err == nil || !strings.Contains(err.Error(), "more than once") {
			t.Errorf("with %q as well: %v", line, err)
		}
	}
	if seen < 2 {
		t.Errorf("%d signatures hold a time", seen)
	}
}

func TestACosignatureOfNoYearIsRefused(t *testing.T) {
	witness := newKey(t, "example.com/witness")
	text := []byte("log\n5\n")
	v := witness.verifier(algCosign)
	for seconds, want := range map[uint64]bool{0: true, lastSecond: true, lastSecond + 1: false, 1<<63 - 1: false, 1<<64 - 1: false} {
		sig := append(binary.BigEndian.AppendUint64(nil, seconds), ed25519.Sign(witness.private, cosigned(seconds, text))...)
		if got := v.Verify(text, sig); got != want {
			t.Errorf("at second %d: %t", seconds, got)
		}
	}
	if _, err := (signer{witness, algCosign, time.Unix(lastSecond+1, 0)}).Sign(text); err == nil {
		t.Error("a time of the year 10000 is signed")
	}
}
