package kill

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// forger is somebody who can write to the directory of a log and has no key.
type forger struct {
	*place
	names []string            // of the segments, in order
	lines map[string][][]byte // of each, without newlines
	seq   uint64              // of the last record
	leaf  [32]byte
}

// forge reads the log of a proxy that does not run.
func forge(t *testing.T, p *place) *forger {
	t.Helper()
	f := &forger{place: p, lines: map[string][][]byte{}}
	entries, _, err := segment.List(p.log)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := filepath.Base(e.Path)
		text := f.read(t, name)
		lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
		f.names, f.lines[name] = append(f.names, name), lines
		f.seq += uint64(len(lines))
		f.leaf = segment.Leaf(lines[len(lines)-1])
	}
	return f
}

func (f *forger) read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(f.log, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (f *forger) put(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.log, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (f *forger) last() string { return f.names[len(f.names)-1] }

// line is the next record, which continues the chain of hashes.
func (f *forger) line(kind, stage, rest string) []byte {
	f.seq++
	line := fmt.Appendf(nil, `{"v":1,"seq":%d,"type":%q,"stage":%q,"time":"2026-03-02T12:00:00Z","session":"forged","id":"forged"%s,"prev":"%s"}`, f.seq, kind, stage, rest, base64.StdEncoding.EncodeToString(f.leaf[:]))
	f.leaf = segment.Leaf(line)
	return append(line, '\n')
}

func (f *forger) request() []byte {
	return f.line("request", "ResponseComplete", `,"what":{"method":"Rmdir"},"outcome":{"result":"ok","code":"OK"}`)
}

// segment is a further one, as a start would begin it.
func (f *forger) segment(t *testing.T, rest ...func() []byte) (name string) {
	t.Helper()
	name = segment.Name(f.seq + 1)
	text := f.line("log", "LogOpen", fmt.Sprintf(`,"log":{"previous_session":"x","previous_seq":%d,"previous_segment":%q,"previous_bytes":%d,"cause":"start","note":"forged","segment":%q}`,
		f.seq, f.last(), len(f.read(t, f.last())), name))
	for _, next := range rest {
		text = append(text, next()...)
	}
	f.put(t, name, text)
	return name
}

// prune removes the first segment, with all that makes it look as if the log itself had: a record, and the tree of what is gone.
func (f *forger) prune(t *testing.T) (record func() []byte) {
	t.Helper()
	gone := f.lines[f.names[0]]
	var tree []struct { // whole subtrees, largest first
		size uint64
		hash []byte
	}
	for _, line := range gone {
		leaf := segment.Leaf(line)
		size, hash := uint64(1), leaf[:]
		for n := len(tree); n > 0 && tree[n-1].size == size; n = len(tree) {
			sum := sha256.Sum256(slices.Concat([]byte{1}, tree[n-1].hash, hash))
			size, hash, tree = 2*size, sum[:], tree[:n-1]
		}
		tree = append(tree, struct {
			size uint64
			hash []byte
		}{size, hash})
	}
	start := fmt.Appendf(nil, "pipeguard.dev/audit-start/v1\n%d\n", len(gone))
	for _, s := range tree {
		start = fmt.Appendf(start, "%s\n", base64.StdEncoding.EncodeToString(s.hash))
	}
	f.put(t, evidence.StartFile, start)
	if err := os.Remove(filepath.Join(f.log, f.names[0])); err != nil {
		t.Fatal(err)
	}
	return func() []byte {
		return f.line("log", "LogPrune", fmt.Sprintf(`,"log":{"pruned":{"segments":[%q],"first_seq":1,"last_seq":%d,"tree_size":%d,"reason":"age"}}`, f.names[0], len(gone), f.seq))
	}
}

// rewrite changes every call and makes all hashes anew.
func (f *forger) rewrite(t *testing.T) {
	t.Helper()
	var leaf [32]byte
	changed := 0
	for _, name := range f.names {
		var text []byte
		for _, line := range f.lines[name] {
			now := bytes.ReplaceAll(line, []byte("Mkdir"), []byte("Rmdir"))
			changed += bytes.Count(line, []byte("Mkdir"))
			at := bytes.LastIndex(now, []byte(`"prev":"`)) + len(`"prev":"`)
			copy(now[at:], base64.StdEncoding.EncodeToString(leaf[:]))
			leaf = segment.Leaf(now)
			text = append(append(text, now...), '\n')
		}
		f.put(t, name, text)
	}
	if changed == 0 {
		t.Fatal("nothing was changed")
	}
}

// lives runs the proxy twice, with calls, so that the log has two segments. killed says how the second life ends.
func (p *place) lives(t *testing.T, killed bool) {
	t.Helper()
	for run := range 2 {
		x := p.start(t)
		x.await(t)
		l := begin(t, p, run)
		<-l.first
		if run == 1 && killed {
			x.Kill()
			l.end()
			return
		}
		x.end(t)
		l.end()
	}
}

// begins says what the proxy logged until it served, or until it refused to start.
func (p *place) begins(t *testing.T) (said string, served bool) {
	t.Helper()
	x := p.start(t)
	defer x.Kill()
	if served = x.serves(t.Context()) == nil; served {
		x.end(t)
	}
	<-x.Exited()
	return x.Stderr.String(), served
}

func (p *place) verified(t *testing.T) evidence.Report {
	t.Helper()
	keys, err := evidence.ReadKeys(p.log + "-signing.key.pub")
	if err != nil {
		t.Fatal(err)
	}
	r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: p.log, Keys: keys, AllowPruned: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shows says whether a reader of what was verified sees a text.
func shows(t *testing.T, r evidence.Report, text string) bool {
	t.Helper()
	for _, p := range r.Parts {
		all, err := os.ReadFile(p.Path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(all[:p.Bytes], []byte(text)) {
			return true
		}
	}
	return false
}

const (
	isForged = `"session":"forged"`
	isTold   = `"event":150`
)

func TestRecordsForgedBehindAStopAreNotSigned(t *testing.T) {
	exe := newPlace(t).exe
	for name, plant := range map[string]func(f *forger){
		"a further segment":               func(f *forger) { f.segment(t, f.request, f.request) },
		"lines behind the closing record": func(f *forger) { f.put(t, f.last(), append(f.read(t, f.last()), f.request()...)) },
		"both": func(f *forger) {
			f.segment(t, f.request)
			f.put(t, f.last(), append(f.read(t, f.last()), f.request()...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := placeOf(t, exe)
			p.lives(t, false)
			before := p.verified(t).LastSeq
			plant(forge(t, p))
			said, served := p.begins(t)
			if !served || !strings.Contains(said, isTold) {
				t.Fatalf("served %v, and said:\n%s", served, said)
			}
			if _, served := p.begins(t); !served {
				t.Error("the next start is stopped")
			}
			r := p.verified(t)
			if r.Verdict != evidence.VerdictIncomplete || r.OwnCovered != r.LastSeq || r.LastSeq <= before || shows(t, r, isForged) {
				t.Errorf("%s %v, %d records, %d signed", r.Verdict, r.Fault, r.LastSeq, r.OwnCovered)
			}
		})
	}
}

// Behind a kill nothing tells the last, unsigned records from forged ones: they are taken over, and the log says so.
func TestRecordsForgedBehindAKillAreCalledUnsigned(t *testing.T) {
	p := newPlace(t)
	p.lives(t, true)
	f := forge(t, p)
	f.put(t, f.last(), append(f.read(t, f.last()), f.request()...))
	if said, served := p.begins(t); !served {
		t.Fatalf("it does not start:\n%s", said)
	}
	want := fmt.Sprintf("to %d, before they were signed", f.seq)
	if r := p.verified(t); r.Verdict != evidence.VerdictIncomplete || !strings.Contains(strings.Join(r.Limits, " "), want) {
		t.Errorf("%s %v: no %q in %q", r.Verdict, r.Fault, want, r.Limits)
	}
}

func TestRecordsAreNotRemovedByAForgedLogPrune(t *testing.T) {
	exe := newPlace(t).exe
	for name, c := range map[string]struct {
		killed bool
		prune  func(t *testing.T, f *forger)
	}{
		"in a further segment": {false, func(t *testing.T, f *forger) { f.segment(t, f.prune(t)) }},
		"behind the closing record": {false, func(t *testing.T, f *forger) {
			f.put(t, f.last(), append(f.read(t, f.last()), f.prune(t)()...))
		}},
		"behind a kill": {true, func(t *testing.T, f *forger) {
			f.put(t, f.last(), append(f.read(t, f.last()), f.prune(t)()...))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := placeOf(t, exe)
			p.lives(t, c.killed)
			c.prune(t, forge(t, p))
			if r := p.verified(t); r.Verdict != evidence.VerdictTampered {
				t.Errorf("before the start: %s %v", r.Verdict, r.Incomplete)
			}
			said, served := p.begins(t)
			if served || !strings.Contains(said, isTold) || !strings.Contains(said, "no LogPrune record that its own process signed") {
				t.Errorf("served %v, and said:\n%s", served, said)
			}
			if r := p.verified(t); r.Verdict != evidence.VerdictTampered {
				t.Errorf("after the start: %s %v", r.Verdict, r.Incomplete)
			}
		})
	}
}

// What stood behind a kill is signed by the next start. A LogPrune among it removes nothing then either.
func TestALogPruneThatWasTakenOverRemovesNothing(t *testing.T) {
	p := newPlace(t)
	p.lives(t, true)
	f := forge(t, p)
	first := f.read(t, f.names[0])
	record := f.prune(t)()
	start := f.read(t, evidence.StartFile)
	f.put(t, f.names[0], first)
	if err := os.Remove(filepath.Join(f.log, evidence.StartFile)); err != nil {
		t.Fatal(err)
	}
	f.put(t, f.last(), append(f.read(t, f.last()), record...))
	if said, served := p.begins(t); !served {
		t.Fatalf("it does not start:\n%s", said)
	}
	f.put(t, evidence.StartFile, start)
	if err := os.Remove(filepath.Join(f.log, f.names[0])); err != nil {
		t.Fatal(err)
	}
	if r := p.verified(t); r.Verdict != evidence.VerdictTampered {
		t.Errorf("%s %v", r.Verdict, r.Incomplete)
	}
	if said, served := p.begins(t); served || !strings.Contains(said, isTold) {
		t.Errorf("served %v, and said:\n%s", served, said)
	}
}

func TestALogThatWasRewrittenIsNotContinued(t *testing.T) {
	exe := newPlace(t).exe
	for name, c := range map[string]struct {
		killed bool
		change func(t *testing.T, f *forger, own []byte)
	}{
		"without checkpoints": {false, func(t *testing.T, f *forger, _ []byte) {
			if err := os.Remove(filepath.Join(f.log, evidence.CheckpointFile)); err != nil {
				t.Fatal(err)
			}
		}},
		"with the checkpoints emptied": {false, func(t *testing.T, f *forger, _ []byte) { f.put(t, evidence.CheckpointFile, nil) }},
		"with a part of a checkpoint":  {false, func(t *testing.T, f *forger, own []byte) { f.put(t, evidence.CheckpointFile, own[:60]) }},
		"without checkpoints, behind a kill": {true, func(t *testing.T, f *forger, _ []byte) {
			f.put(t, evidence.CheckpointFile, nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := placeOf(t, exe)
			p.lives(t, c.killed)
			f := forge(t, p)
			f.rewrite(t)
			c.change(t, f, f.read(t, evidence.CheckpointFile))
			if said, served := p.begins(t); served || !strings.Contains(said, isTold) || !strings.Contains(said, "does not match its last checkpoint") {
				t.Fatalf("served %v, and said:\n%s", served, said)
			}
			// As the message says: the directory is moved away, and a new log begins, which does not hide that.
			if err := os.Rename(p.log, p.log+"-away"); err != nil {
				t.Fatal(err)
			}
			said, served := p.begins(t)
			if !served || !strings.Contains(said, isTold) || !strings.Contains(said, "a new log begins") {
				t.Fatalf("served %v, and said:\n%s", served, said)
			}
			if said, served := p.begins(t); !served || strings.Contains(said, isTold) {
				t.Errorf("the start after that: served %v, and said:\n%s", served, said)
			}
			if r := p.verified(t); r.Fault != nil || !strings.Contains(strings.Join(r.Limits, " "), "the first record of the log says that the key has signed a log of") {
				t.Errorf("%v %q", r.Fault, r.Limits)
			}
		})
	}
}

// Checkpoints that are gone from the directory are known beside the key.
func TestALogWithoutItsCheckpointsGoesOnLoudly(t *testing.T) {
	p := newPlace(t)
	p.lives(t, false)
	signed := p.verified(t).OwnCovered
	file := filepath.Join(p.log, evidence.CheckpointFile)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if said, served := p.begins(t); !served || !strings.Contains(said, isTold) || !strings.Contains(said, "checkpoints are missing") {
		t.Fatalf("served %v, and said:\n%s", served, said)
	}
	if r := p.verified(t); r.Verdict != evidence.VerdictIncomplete || r.OwnCovered <= signed {
		t.Errorf("%s %v, %d signed", r.Verdict, r.Fault, r.OwnCovered)
	}
	// Of a key of the version before, nothing is remembered: its log goes on if it has its checkpoints, and otherwise not.
	remembered := p.log + "-signing.key.signed"
	if err := os.Remove(remembered); err != nil {
		t.Fatal(err)
	}
	if said, served := p.begins(t); !served || strings.Contains(said, isTold) {
		t.Fatalf("served %v, and said:\n%s", served, said)
	}
	for _, name := range []string{remembered, file} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if said, served := p.begins(t); served || !strings.Contains(said, "holds no checkpoint signed by the log's key") {
		t.Errorf("served %v, and said:\n%s", served, said)
	}
}
