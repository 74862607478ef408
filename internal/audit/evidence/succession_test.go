package evidence

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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

// Once a key was replaced, whoever has it, and can write to the directory, cannot sign for the log any more: no start takes such a checkpoint for its own, with
// the rotation under way or not, and a verification finds it.
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
			if r.Verdict != VerdictTampered || r.Fault == nil || !strings.Contains(r.Fault.Error(), "replaced at 4 records") {
				t.Errorf("%s, %v, %v", r.Verdict, r.Fault, r.Incomplete)
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

func TestKeysReplaceEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		checkpoints string // sizes and keys
		fault, gap  string // at which
	}{
		"one key":                              {"1a 2a 3a", "", ""},
		"a rotation":                           {"1a 2ab 3ab 4b", "", ""},
		"a rotation without a record":          {"1a 1ab 1b 2b", "", ""},
		"the same, with copies from elsewhere": {"1a 1ab 1b 1a 1ab 2b", "", ""},
		"two rotations":                        {"1a 2ab 3b 4bc 5c", "", ""},
		"two at once":                          {"1a 2ab 2bc 3c", "", ""},
		"both from the beginning":              {"1ab 2b", "", ""},
		"one that only witnesses signed":       {"1a 2 3ab 4 5b", "", ""},
		"the old key in the rotation":          {"1a 2ab 3a", "3a", ""},
		"the old key after it":                 {"1a 2ab 3b 4a", "4a", ""},
		"the old key of the same size":         {"1a 2ab 3b 3a", "3a", ""},
		"the old key of two":                   {"1a 2ab 3b 4bc 5c 6b", "6b", ""},
		"the oldest key of two":                {"1a 2ab 3b 4bc 5c 6a", "6a", ""},
		"the old key with another":             {"1a 2ab 3b 4ac", "4ac", ""},
		"both from the beginning, and the old": {"1ab 2b 3a", "3a", ""},
		"both alone":                           {"1ab 2b 2a", "2a", ""},
		"a key that nobody handed over to":     {"1a 2b 3b", "", "2b"},
		"back to the key before":               {"1a 2b 3a", "3a", "2b"},
	} {
		t.Run(name, func(t *testing.T) {
			var s succession
			fault, gap := "", ""
			all := strings.Fields(c.checkpoints)
			for len(all) > 0 {
				n := 1
				for n < len(all) && all[n][0] == all[0][0] {
					n++
				}
				var group []expected
				for _, text := range all[:n] {
					e := expected{file: text, Checkpoint: Checkpoint{Head: Head{Origin: origin, Size: uint64(text[0] - '0')}}}
					for _, id := range []byte(text[1:]) {
						e.by = e.by.with(uint32(id))
					}
					group = append(group, e)
				}
				all = all[n:]
				said, err := s.add(group)
				if f, ok := errors.AsType[*Fault](err); ok {
					fault = f.File
					break
				}
				if said != "" {
					gap = group[0].file
				}
			}
			if fault != c.fault || gap != c.gap {
				t.Errorf("fault %q, gap %q, want %q, %q", fault, gap, c.fault, c.gap)
			}
		})
	}
}

// What shows a rotation is kept, however old it is and however short it was.
func TestThinningKeepsWhatShowsARotation(t *testing.T) {
	m, old, _ := rotated(t)
	for range 3 { // in the same hour
		m.clock = m.clock.Add(time.Second)
		m.open(Options{})
		m.records(1)
		m.close()
	}
	before := bytes.Count(files(t, m.dir)[CheckpointFile], []byte(origin+"\n"))
	m.clock = m.clock.Add(48 * time.Hour)
	m.open(Options{})
	m.records(1)
	m.close()
	after := bytes.Count(files(t, m.dir)[CheckpointFile], []byte(origin+"\n"))
	if after >= before {
		t.Errorf("%d checkpoints, and %d after thinning: nothing was left out", before, after)
	}
	r := verify(t, VerifyOptions{Dir: m.dir, Keys: keysOf(t, old.LogKey(), m.key.LogKey())})
	if r.Fault != nil || slices.ContainsFunc(r.Incomplete, func(s string) bool { return strings.Contains(s, "handed over") }) {
		t.Errorf("%v, %v", r.Fault, r.Incomplete)
	}
}
