package evidence

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// rotated is a log of three sessions: signed by the old key, by both, and by the new one alone. Each key remembers beside it what it signed.
func rotated(t *testing.T) (m *madeLog, old *Key, states []string) {
	t.Helper()
	dir := t.TempDir()
	before, after := filepath.Join(dir, "old.signed"), filepath.Join(dir, "new.signed")
	m = newLog(t, Options{States: []string{before}})
	old = m.key
	m.begin(0)
	m.records(2)
	m.close()
	m.key = newKey(t, origin)
	states = []string{after, before}
	m.open(Options{Keys: []*Key{m.key, old}, States: states})
	m.records(1)
	m.close()
	m.open(Options{States: states[:1]})
	m.records(1)
	m.close()
	return m, old, states
}

// signedBy adds records to a log, and a checkpoint of them.
func signedBy(t *testing.T, m *madeLog, keys ...*Key) {
	t.Helper()
	m.records(2)
	raw, err := sign(Head{origin, m.seq, signedRoot(t, m)}, m.clock.Add(time.Second), keys...)
	if err != nil {
		t.Fatal(err)
	}
	own := files(t, m.dir)[CheckpointFile]
	writeFile(t, filepath.Join(m.dir, CheckpointFile), slices.Concat(own, raw, []byte("\n")))
}

// A replaced key cannot sign for the log any more, also in the hands of an attacker who can write to the directory: no start accepts its checkpoint, during the
// rotation or after it, and a verification names it.
func TestAReplacedKeySignsNothing(t *testing.T) {
	for name, o := range map[string]func(m *madeLog, old *Key, states []string) Options{
		"in the rotation": func(m *madeLog, old *Key, states []string) Options {
			return Options{Dir: m.dir, Keys: []*Key{m.key, old}, States: states}
		},
		"after it": func(m *madeLog, _ *Key, states []string) Options {
			return Options{Dir: m.dir, Keys: []*Key{m.key}, States: states[:1]}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, old, states := rotated(t)
			both := keysOf(t, old.LogKey(), m.key.LogKey())
			options := o(m, old, states)
			signedBy(t, m, old)
			if _, err := LastSigned(m.dir, options.Keys, options.States); !IsFault(err) {
				t.Errorf("its checkpoint counts: %v", err)
			}
			if log, err := Open(context.Background(), options); !IsFault(err) {
				t.Errorf("the log is continued: %v", errors.Join(err, log.Close(t.Context())))
			}
			r := verify(t, VerifyOptions{Dir: m.dir, Keys: both})
			isSaid := slices.ContainsFunc(r.Incomplete, func(s string) bool { return strings.Contains(s, "had replaced at 4 records") })
			if r.Verdict != VerdictIncomplete || !isSaid || r.OwnCovered != 5 {
				t.Errorf("%s, covered to %d, %v, %v", r.Verdict, r.OwnCovered, r.Fault, r.Incomplete)
			}
		})
	}
	t.Run("with the key that replaced it", func(t *testing.T) { // as in a rotation that is under way
		m, old, states := rotated(t)
		signedBy(t, m, m.key, old)
		log, err := Open(context.Background(), Options{Dir: m.dir, Keys: []*Key{m.key, old}, States: states})
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, VerifyOptions{Dir: m.dir, Keys: keysOf(t, old.LogKey(), m.key.LogKey())}); r.Fault != nil {
			t.Error(r.Fault)
		}
	})
}

// The holder of a replaced key can remove every signature of the new key. Only the reader's keys then show that there was a rotation.
func TestALogThatTheNewestKeyDidNotSignIsSaidToBeOne(t *testing.T) {
	m, old, _ := rotated(t)
	both, says := keysOf(t, old.LogKey(), m.key.LogKey()), fmt.Sprintf("no checkpoint is signed by %s+%s, the last key that is given", origin, keysOf(t, m.key.LogKey()).Describe()[0].Hash)
	isSaid := func(keys Keys) bool {
		r := verify(t, VerifyOptions{Dir: m.dir, Keys: keys})
		if r.Fault != nil || r.OwnCovered != m.seq {
			t.Errorf("covered to %d of %d, %v", r.OwnCovered, m.seq, r.Fault)
		}
		return strings.HasPrefix(r.Incomplete[0], says)
	}
	if isSaid(both) {
		t.Error("it is said of a log that the new key has signed")
	}
	writeFile(t, filepath.Join(m.dir, CheckpointFile), nil)
	signedBy(t, m, old)
	if !isSaid(both) {
		t.Error("nothing is said of a log that the replaced key alone has signed")
	}
	name := filepath.Join(m.dir, CheckpointFile)
	writeFile(t, name, append(files(t, m.dir)[CheckpointFile], "x\n"...))
	writeFile(t, filepath.Join(m.dir, "a"), nil)
	if !isSaid(both) {
		t.Error("another reason is said before")
	}
	if isSaid(keysOf(t, old.LogKey())) {
		t.Error("it is said to a reader who has the old key alone")
	}
}

// prunedBy removes the first segment of a log, with a LogPrune that the keys sign.
func prunedBy(t *testing.T, m *madeLog, keys ...*Key) {
	t.Helper()
	segments, _ := paths(t, m)
	first := bytes.Count(files(t, m.dir)[filepath.Base(segments[0])], []byte("\n"))
	tree := treeAt(t, m.dir, uint64(first)) // #nosec G115 -- a length
	m.write(m.line("log", "LogPrune", fmt.Sprintf(`,"log":{"pruned":{"segments":[],"first_seq":1,"last_seq":%d,"tree_size":10,"reason":"age"}}`, first)))
	signedBy(t, m, keys...)
	writeFile(t, filepath.Join(m.dir, StartFile), formatStart(tree))
	if err := os.Remove(segments[0]); err != nil {
		t.Fatal(err)
	}
}

// elsewhere is a file with the last checkpoint, signed once more by keys, if any, and cosigned by a witness, as it is held elsewhere.
func elsewhere(t *testing.T, m *madeLog, witness *Key, keys ...*Key) string {
	t.Helper()
	head, err := LastSigned(m.dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := sign(head.Head, m.clock, keys...)
	if err != nil {
		t.Fatal(err)
	}
	n := &note.Note{Text: head.text()}
	if len(keys) > 0 {
		if n, err = note.Open(raw, keysOfAll(keys).of(origin)); err != nil {
			t.Fatal(err)
		}
	}
	if raw, err = note.Sign(n, signer{witness, algCosign, m.clock}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "elsewhere")
	writeFile(t, file, raw)
	return file
}

// Cutting checkpoints or signatures needs no key: the log goes on, and what is missing is restored.
func TestSignaturesOfTheNewKeyThatWereRemovedStopNoStart(t *testing.T) {
	for name, keep := range map[string]int{"cut back to the old key's time": 1, "the last one lacks the new key": 2} {
		t.Run(name, func(t *testing.T) {
			m, old, states := rotated(t)
			m.open(Options{Keys: []*Key{m.key, old}, States: states}) // the rotation is under way
			m.close()
			head, err := LastSigned(m.dir, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if keep == 1 {
				tree := treeAt(t, m.dir, 3)
				head.Head = Head{origin, 3, tree.root()}
			}
			raw, err := sign(head.Head, m.clock, old)
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(m.dir, CheckpointFile), append(raw, '\n'))
			m.open(Options{Keys: []*Key{m.key, old}, States: states})
			m.records(1)
			m.close()
			if r := verify(t, VerifyOptions{Dir: m.dir, Keys: keysOf(t, old.LogKey(), m.key.LogKey())}); r.Fault != nil || r.OwnCovered != m.seq {
				t.Errorf("covered to %d of %d, %v, %v", r.OwnCovered, m.seq, r.Fault, r.Incomplete)
			}
		})
	}
}

// What was removed by the word of a replaced key is gone, whatever the attacker leaves of the log's own checkpoints, and whatever he has cosigned. The line of
// the new key in a checkpoint is as easily removed as the checkpoint.
func TestAPruneRecordUnderAReplacedKeyDoesNotCount(t *testing.T) {
	witness := newKey(t, "example.com/witness")
	for name, own := range map[string]func(t *testing.T, m *madeLog){
		"all of the log's own checkpoints are there": func(*testing.T, *madeLog) {},
		"none is": func(t *testing.T, m *madeLog) {
			writeFile(t, filepath.Join(m.dir, CheckpointFile), nil)
		},
		"the new key's lines are removed": func(t *testing.T, m *madeLog) {
			lines := slices.Collect(bytes.Lines(files(t, m.dir)[CheckpointFile]))
			id, err := hex.DecodeString(strings.Split(m.key.LogKey(), "+")[1])
			if err != nil {
				t.Fatal(err)
			}
			isNew := func(line []byte) bool {
				fields := strings.Fields(string(line))
				if len(fields) != 3 {
					return false
				}
				signature, err := base64.StdEncoding.DecodeString(fields[2])
				return err == nil && bytes.HasPrefix(signature, id)
			}
			writeFile(t, filepath.Join(m.dir, CheckpointFile), bytes.Join(slices.DeleteFunc(lines, isNew), nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, old, _ := rotated(t)
			keys := keysOf(t, old.LogKey(), m.key.LogKey(), witness.WitnessKey())
			genuine := elsewhere(t, m, witness, m.key, old)
			own(t, m)
			prunedBy(t, m, old)
			for _, outside := range [][]string{{genuine}, {genuine, elsewhere(t, m, witness, old)}} {
				r := verify(t, VerifyOptions{Dir: m.dir, Keys: keys, Outside: outside, AllowPruned: true, RequireWitness: true})
				if r.Verdict != VerdictTampered {
					t.Errorf("%d from elsewhere: %s, %v, %v", len(outside), r.Verdict, r.Fault, r.Incomplete)
				}
			}
		})
	}
}

func TestCheckpointsOfReplacedKeysAreLeftOut(t *testing.T) {
	for name, c := range map[string]struct{ all, left string }{ // sizes and ranks
		"one key":                         {"1a 2a 3a", ""},
		"a rotation":                      {"1a 2b 3b", ""},
		"one of a size is of the old key": {"1a 2a 2b 3b 3a", ""},
		"the old key after the new one":   {"1a 2b 3a 4b", "3a"},
		"… to the end":                    {"1a 2b 3a 4a", "3a 4a"},
		"two rotations":                   {"1a 2b 3c 4b 5a 6c", "4b 5a"},
	} {
		v := newVerification(VerifyOptions{})
		for _, text := range strings.Fields(c.all) {
			e := expected{file: text, Checkpoint: Checkpoint{Head: Head{Origin: origin, Size: uint64(text[0] - '0')}}}
			e.rank = int(text[1]-'a') + 1
			v.expect = append(v.expect, e)
		}
		v.retire()
		kept := map[string]bool{}
		for _, e := range v.expect {
			kept[e.file] = true
		}
		var left []string
		for _, text := range strings.Fields(c.all) {
			if !kept[text] {
				left = append(left, text)
			}
		}
		if got := strings.Join(left, " "); got != c.left || (got != "") != (len(v.report.byKeys) == 1) {
			t.Errorf("%s: %q are left out, want %q; %v", name, got, c.left, v.report.byKeys)
		}
	}
}

func TestAWitnessCosignsNothingOfAReplacedKey(t *testing.T) {
	w := newWatched(t)
	w.begin(0)
	client := w.client(t)
	send := func(c Copy) error { return client.Send(t.Context(), c) }
	ended := func() {
		w.close()
		for len(w.sink.got) > 0 { // its last checkpoint
			<-w.sink.got
		}
	}
	if err := send(w.grown(1)); err != nil {
		t.Fatal(err)
	}
	old, all := w.key, []string{w.key.LogKey()}
	w.known = func() Keys { return keysOf(t, all...) }
	ended()
	w.key = newKey(t, origin)
	all = append(all, w.key.LogKey())
	w.open(Options{Keys: []*Key{w.key, old}, Sinks: []Sink{w.sink}})
	if err := send(w.grown(1)); err != nil {
		t.Fatalf("both keys: %v", err)
	}
	ended()
	w.open(Options{Keys: []*Key{old}, Sinks: []Sink{w.sink}})
	if err := send(w.grown(1)); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("the old key alone: %v", err)
	}
	ended()
	w.open(Options{Sinks: []Sink{w.sink}})
	if err := send(w.grown(1)); err != nil {
		t.Errorf("the new key alone: %v", err)
	}
}

// What a replaced key signs in the same hour takes no place of what the new one signed.
func TestThinningKeepsWhatAnotherKeySigned(t *testing.T) {
	old, next := newKey(t, origin), newKey(t, origin)
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var file bytes.Buffer
	for i, keys := range [][]*Key{{old}, {old}, {next, old}, {next}, {next}, {next}, {old}} {
		raw, err := sign(Head{Origin: origin, Size: uint64(i) + 1}, at.Add(time.Duration(i)*time.Second), keys...)
		if err != nil {
			t.Fatal(err)
		}
		file.Write(append(raw, '\n'))
	}
	var out bytes.Buffer
	buffered := bufio.NewWriter(&out)
	if _, _, err := thin(&file, buffered, at.Add(48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := buffered.Flush(); err != nil {
		t.Fatal(err)
	}
	var left []uint64
	for n, err := range Notes(&out) {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, sizeOf(n.Raw))
	}
	if want := []uint64{1, 2, 3, 4, 6, 7}; !slices.Equal(left, want) {
		t.Errorf("%v are left, want %v", left, want)
	}
}

// A proof uses the newest checkpoint, which a witness may have cosigned.
func TestAProofIsOfACosignedCheckpoint(t *testing.T) {
	m, witness := sample(t), newKey(t, "example.com/witness")
	file := elsewhere(t, m, witness, m.key)
	o := VerifyOptions{Dir: m.dir, Keys: keysOf(t, m.key.LogKey(), witness.WitnessKey()), Outside: []string{file}}
	proof, err := Prove(t.Context(), o, 3)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := CheckProof(proof, o.Keys); err != nil || got.Seq != 3 {
		t.Errorf("record %d, %v", got.Seq, err)
	}
}

// The thief of a witness's key has no key of the log, and anybody can cut the log's signatures from a checkpoint, those of a replaced key among them.
func TestACosignatureWithoutTheLogsSignatureCountsForNothing(t *testing.T) {
	m, old, _ := rotated(t)
	witness := newKey(t, "example.com/witness")
	o := VerifyOptions{Dir: m.dir, Keys: keysOf(t, old.LogKey(), m.key.LogKey(), witness.WitnessKey()), RequireWitness: true}
	signed := func(keys ...*Key) VerifyOptions {
		o := o
		o.Outside = []string{elsewhere(t, m, witness, keys...)}
		return o
	}
	genuine := signed(m.key)
	if r := verify(t, genuine); r.Verdict != VerdictOK {
		t.Fatalf("%s, %v, %v", r.Verdict, r.Fault, r.Incomplete)
	}
	proof, err := Prove(t.Context(), genuine, 3)
	if err != nil {
		t.Fatal(err)
	}
	signedBy(t, m, old)
	if r := verify(t, signed(old)); r.Verdict != VerdictIncomplete {
		t.Errorf("by the old key: %s, %v", r.Verdict, r.Fault)
	}
	cut := signed()
	if r, err := Verify(t.Context(), cut); !errors.Is(err, ErrUnsigned) {
		t.Errorf("without the log's signature: %v, %v", r.Verdict, err)
	}
	if _, err := Prove(t.Context(), cut, 3); !errors.Is(err, ErrUnsigned) {
		t.Errorf("a proof by it: %v", err)
	}
	record, _, _ := bytes.Cut(proof, []byte("\n\n"))
	alone, err := os.ReadFile(cut.Outside[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := CheckProof(slices.Concat(record, []byte("\n\n"), alone), o.Keys); !errors.Is(err, ErrUnsigned) {
		t.Errorf("a proof with it: %v", err)
	}
}
