package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// removed is a log that goes on behind its last checkpoint, and from which somebody removed the first segment, with the tree of its records.
func removed(t *testing.T) (m *madeLog, outside string) {
	t.Helper()
	m, outside = unsealed(t)
	segments, _ := paths(t, m)
	first := slices.Collect(bytes.Lines(files(t, m.dir)[filepath.Base(segments[0])]))
	writeFile(t, filepath.Join(m.dir, StartFile), formatStart(treeAt(t, m.dir, uint64(len(first)))))
	if err := os.Remove(segments[0]); err != nil {
		t.Fatal(err)
	}
	return m, outside
}

const prunesSix = `,"log":{"pruned":{"segments":[],"first_seq":1,"last_seq":6,"tree_size":10,"reason":"age"}}`

// A record that no checkpoint covers is anybody's word: it excuses nothing that is gone.
func TestALogPruneCountsUnderACheckpointAlone(t *testing.T) {
	m, outside := removed(t)
	m.write(m.line("log", "LogPrune", prunesSix))
	verdicts := func(what string, want Verdict) {
		t.Helper()
		for _, given := range [][]string{nil, {outside}} {
			for _, allow := range []bool{false, true} {
				r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: given, AllowPruned: allow})
				wanted := want
				if want == "" { // the prune is signed
					if wanted = VerdictIncomplete; allow && len(given) > 0 {
						wanted = VerdictOK
					}
				}
				if r.Verdict != wanted {
					t.Errorf("%s, allowed %v, %d from elsewhere: %s %v %v", what, allow, len(given), r.Verdict, r.Fault, r.Incomplete)
				}
			}
		}
	}
	verdicts("unsigned", VerdictTampered)
	if _, err := Open(context.Background(), Options{Dir: m.dir, Keys: []*Key{m.key}}); !IsFault(err) || !strings.Contains(err.Error(), "no LogPrune record that its own process signed") {
		t.Errorf("the log is continued: %v", err)
	}
	own, root := files(t, m.dir)[CheckpointFile], signedRoot(t, m)
	m.close() // an open file cannot be removed everywhere
	if err := os.Remove(filepath.Join(m.dir, CheckpointFile)); err != nil {
		t.Fatal(err)
	}
	// Nothing is signed at all: what is gone is missing, and that is not allowed either.
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), AllowPruned: true}); r.Verdict != VerdictIncomplete || len(r.Missing) != 1 || r.PrunedUntil != 0 {
		t.Errorf("without checkpoints: %s, missing %v, pruned %d", r.Verdict, r.Missing, r.PrunedUntil)
	}
	writeFile(t, filepath.Join(m.dir, CheckpointFile), own)
	raw, err := sign(Head{origin, 11, root}, m.clock.Add(time.Minute), m.key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(m.dir, CheckpointFile), slices.Concat(own, raw, []byte("\n")))
	outside = m.outside()
	verdicts("signed", "")
	log, err := Open(context.Background(), Options{Dir: m.dir, Keys: []*Key{m.key}})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// signedRoot is the root that the writer of the log has.
func signedRoot(t *testing.T, m *madeLog) [32]byte {
	t.Helper()
	_, root, err := m.log.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// remembering is a log whose last checkpoint is remembered beside its key.
func remembering(t *testing.T) (m *madeLog, o Options) {
	t.Helper()
	states := []string{filepath.Join(t.TempDir(), "key.signed")}
	m = newLog(t, Options{States: states})
	m.begin(0)
	m.records(3)
	m.checkpoint()
	m.records(3)
	m.end()
	m.close()
	return m, Options{Dir: m.dir, Keys: []*Key{m.key}, States: states, Now: func() time.Time { return m.clock }}
}

func TestALogIsHeldToWhatIsRememberedBesideItsKey(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *madeLog, own []byte)
		want   error
	}{
		"as it is": {func(*madeLog, []byte) {}, nil},
		"set back with its checkpoints": {func(m *madeLog, own []byte) {
			lines := slices.Collect(bytes.Lines(files(t, m.dir)[filepath.Base(m.file)]))
			writeFile(t, m.file, bytes.Join(lines[:4], nil))
			writeFile(t, filepath.Join(m.dir, CheckpointFile), own[:bytes.Index(own[1:], []byte("\n\n"+origin))+3])
		}, ErrRolledBack},
		"rewritten, without checkpoints": {func(m *madeLog, own []byte) {
			forge(t, m, 3)
			writeFile(t, filepath.Join(m.dir, CheckpointFile), nil)
		}, ErrRolledBack},
	} {
		t.Run(name, func(t *testing.T) {
			m, o := remembering(t)
			c.change(m, files(t, m.dir)[CheckpointFile])
			last, err := LastSigned(m.dir, o.Keys, o.States)
			if err != nil || last.Size != m.seq {
				t.Errorf("what was signed last is of %d records, %v", last.Size, err)
			}
			log, err := Open(context.Background(), o)
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if err == nil {
				if err := log.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Checkpoints of fewer records than were removed since hold nothing that is left. A log whose own are all of that kind did not start, for a difference between
// two equal numbers.
func TestCheckpointsCutBackBehindWhatWasRemovedArePutBack(t *testing.T) {
	states := []string{filepath.Join(t.TempDir(), "key.signed")}
	var told []error
	o := Options{States: states, OnFault: func(err error) { told = append(told, err) }}
	m := newLog(t, o)
	for range 3 {
		m.begin(0)
		m.records(4)
		m.checkpoint()
	}
	own := files(t, m.dir)[CheckpointFile]
	second := bytes.Index(own[1:], []byte(origin+"\n")) + 1 // the file begins with one of 5 records
	segments, _ := paths(t, m)
	m.prune(t, segments[:2], "10", true)
	m.checkpoint()
	m.close()
	if len(told) != 0 {
		t.Fatal(told)
	}
	writeFile(t, filepath.Join(m.dir, CheckpointFile), own[:second])
	if last, err := LastSigned(m.dir, []*Key{m.key}, states); err != nil || last.Size != m.seq {
		t.Errorf("what was signed last is of %d records, %v", last.Size, err)
	}
	m.open(o)
	if len(told) != 1 || !errors.Is(told[0], ErrCheckpointsGone) {
		t.Errorf("told %v", told)
	}
	m.begin(0)
	m.close()
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}, AllowPruned: true}); r.Verdict != VerdictOK {
		t.Errorf("%s %v %v", r.Verdict, r.Fault, r.Incomplete)
	}
	// Without what is remembered beside the key, nothing holds what is left.
	writeFile(t, filepath.Join(m.dir, CheckpointFile), own[:second])
	if log, err := Open(context.Background(), Options{Dir: m.dir, Keys: []*Key{m.key}}); err == nil {
		t.Errorf("the log is continued: %v", log.Close(t.Context()))
	}
}

// A loss of power may spoil the place that was being written, and no other.
func TestWhatIsRememberedOutlivesATornWrite(t *testing.T) {
	m, o := remembering(t)
	text, err := os.ReadFile(o.States[0])
	if err != nil || len(text) != 2*stateSlot {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	for _, torn := range []int{0, 1, 30, 200, stateSlot} {
		for slot := range 2 {
			spoilt := bytes.Clone(text)
			clear(spoilt[slot*stateSlot+torn : (slot+1)*stateSlot])
			writeFile(t, o.States[0], spoilt)
			s, err := readStates(o.States, m.keys())
			if err != nil || !s.isKnown || s.Size < 4 || s.Size > m.seq {
				t.Errorf("slot %d torn at %d: %d records, known %v, %v", slot, torn, s.Size, s.isKnown, err)
			}
		}
	}
	for name, content := range map[string][]byte{"nothing": nil, "zeros": make([]byte, 2*stateSlot), "something else": []byte("x\n"), "another key's": otherState(t)} {
		writeFile(t, o.States[0], content)
		if s, err := readStates(o.States, m.keys()); err != nil || s.isKnown || s.Size > 0 {
			t.Errorf("%s: %+v %v", name, s, err)
		}
	}
	writeFile(t, o.States[0], make([]byte, 2*stateSlot+1))
	if _, err := readStates(o.States, m.keys()); err == nil {
		t.Error("a file that is longer is read")
	}
}

func otherState(t *testing.T) []byte {
	t.Helper()
	raw, err := sign(Head{origin, 99, [32]byte{1}}, time.Now(), newKey(t, origin))
	if err != nil {
		t.Fatal(err)
	}
	text, err := formatState(raw)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A place beside the key that cannot be written is told once, and stops no log.
func TestALogGoesOnIfNothingCanBeRemembered(t *testing.T) {
	told := 0
	m := newLog(t, Options{States: []string{filepath.Join(t.TempDir(), "no such directory", "key.signed")}, OnFault: func(err error) {
		if told++; !strings.Contains(fmt.Sprint(err), "beside the key") {
			t.Error(err)
		}
	}})
	m.begin(0)
	m.records(2)
	m.checkpoint()
	m.close()
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// Anybody can compute the root of records that were added, and write a checkpoint of them that the log's key did not sign.
func TestACheckpointThatTheKeyDidNotSignCoversNothing(t *testing.T) {
	m, o := remembering(t)
	m.begin(0)
	m.records(1)
	raw, err := sign(Head{origin, m.seq, signedRoot(t, m)}, m.clock, newKey(t, origin))
	if err != nil {
		t.Fatal(err)
	}
	own := files(t, m.dir)[CheckpointFile]
	writeFile(t, filepath.Join(m.dir, CheckpointFile), slices.Concat(own, raw, []byte("\n")))
	if last, err := LastSigned(m.dir, o.Keys, o.States); !IsFault(err) {
		t.Errorf("%d records count as signed: %v", last.Size, err)
	}
	if log, err := Open(context.Background(), o); !IsFault(err) {
		t.Errorf("the log is continued: %v", errors.Join(err, log.Close(t.Context())))
	}
}
