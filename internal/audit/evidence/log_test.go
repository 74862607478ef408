package evidence

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

func TestATreeHasTheRootAndProofsOfRFC6962(t *testing.T) {
	var stored []tlog.Hash
	all := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var out []tlog.Hash
		for _, i := range indexes {
			out = append(out, stored[i])
		}
		return out, nil
	})
	const n = 70
	trees := []leafRange{{}}
	var leaves []tlog.Hash
	for i := range int64(n) {
		leaf := Leaf([]byte{byte(i)})
		hashes, err := tlog.StoredHashesForRecordHash(i, leaf, all)
		if err != nil {
			t.Fatal(err)
		}
		stored, leaves = append(stored, hashes...), append(leaves, leaf)
		next := trees[i].clone()
		next.append(leaf)
		trees = append(trees, next)
	}
	for size := range n + 1 {
		want, err := tlog.TreeHash(int64(size), all)
		if err != nil {
			t.Fatal(err)
		}
		if got := trees[size].root(); got != want {
			t.Fatalf("root of %d: %v, want %v", size, got, want)
		}
		if same, ok := leafRangeOfHashes(0, uint64(size), trees[size].subtrees()); !ok || same.root() != want {
			t.Fatalf("a tree of %d from its subtrees", size)
		}
		for old := range size {
			after := leafRange{begin: uint64(old), end: uint64(old)}
			for _, l := range leaves[old:size] {
				after.append(l)
			}
			if old > 0 {
				proof, err := proveGrowth(trees[old], after)
				if err != nil || tlog.CheckTree(proof, int64(size), want, int64(old), trees[old].root()) != nil {
					t.Fatalf("growth from %d to %d: %v", old, size, err)
				}
			}
			behind := leafRange{begin: uint64(old) + 1, end: uint64(old) + 1}
			for _, l := range leaves[old+1 : size] {
				behind.append(l)
			}
			proof, err := proveLeaf(trees[old], behind)
			if err != nil || tlog.CheckRecord(proof, int64(size), want, int64(old), leaves[old]) != nil {
				t.Fatalf("leaf %d of %d: %v", old, size, err)
			}
		}
	}
}

func TestALogIsContinuedAfterItWasClosed(t *testing.T) {
	m := sample(t)
	m.open(Options{})
	m.begin(0)
	m.records(3)
	m.close()
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}}); r.Verdict != VerdictOK {
		t.Errorf("%s %v %v", r.Verdict, r.Fault, r.Incomplete)
	}
}

func TestALogThatIsNotTheOneSignedLastIsNotContinued(t *testing.T) {
	for name, change := range map[string]func(*madeLog){
		"its last record is gone": func(m *madeLog) {
			text, _ := os.ReadFile(m.file)
			_ = os.WriteFile(m.file, []byte(string(text)[:strings.LastIndex(strings.TrimSuffix(string(text), "\n"), "\n")+1]), 0o600)
		},
		"all segments are gone": func(m *madeLog) {
			for name := range files(t, m.dir) {
				if name != CheckpointFile {
					_ = os.Remove(filepath.Join(m.dir, name))
				}
			}
		},
		"its records were written anew": func(m *madeLog) { forge(t, m, 4) },
		"a record was changed": func(m *madeLog) {
			text, _ := os.ReadFile(m.file)
			_ = os.WriteFile(m.file, []byte(strings.Replace(string(text), "Mkdir", "Rmdir", 1)), 0o600)
		},
		"it is another key's": func(m *madeLog) { m.key = newKey(t, OriginPrefix+"node-2") },
		"its checkpoints hold something else": func(m *madeLog) {
			_ = os.WriteFile(filepath.Join(m.dir, CheckpointFile), []byte("x\n\ny\n"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := sample(t)
			change(m)
			if l, err := Open(context.Background(), Options{Dir: m.dir, Keys: []*Key{m.key}}); err == nil {
				_ = l.Close(context.Background())
				t.Error("it was opened")
			}
		})
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	a, b := newKey(t, "a"), newKey(t, "b")
	for name, o := range map[string]Options{
		"no directory":     {Keys: []*Key{a}},
		"no key":           {Dir: t.TempDir()},
		"keys of two logs": {Dir: t.TempDir(), Keys: []*Key{a, b}},
	} {
		if _, err := Open(context.Background(), o); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

func TestAClosedLogSignsNothing(t *testing.T) {
	m := newLog(t, Options{})
	m.begin(0)
	m.records(1)
	m.close()
	if err := m.log.Checkpoint(context.Background()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a checkpoint of a closed log: %v", err)
	}
}

func TestOldCheckpointsAreKeptByTheHour(t *testing.T) {
	m := newLog(t, Options{})
	m.begin(0)
	for range 72 * 4 { // three days, four an hour
		m.records(1)
		m.checkpoint()
		m.clock = m.clock.Add(15 * time.Minute)
	}
	m.close()
	m.open(Options{})
	m.close()
	n := strings.Count(string(files(t, m.dir)[CheckpointFile]), "\n\n— ")
	if want := 48 + 24*4; n < want-4 || n > want+4 {
		t.Errorf("%d checkpoints, want about %d", n, want)
	}
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}}); r.Verdict != VerdictOK {
		t.Errorf("%s %v", r.Verdict, r.Fault)
	}
}

func TestATornCheckpointIsCutOffAtTheNextStart(t *testing.T) {
	m := sample(t)
	whole := files(t, m.dir)[CheckpointFile]
	file := filepath.Join(m.dir, CheckpointFile)
	for cut := len(whole) - 150; cut < len(whole); cut++ {
		if !IsTried(cut, 1) {
			continue
		}
		if err := os.WriteFile(file, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		m.open(Options{})
		m.close()
		if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}}); r.Verdict != VerdictOK {
			t.Fatalf("cut at %d: %s %v %v", cut, r.Verdict, r.Fault, r.Incomplete)
		}
	}
}

// stuck is a sink that never answers.
type stuck struct{ asked atomic.Int32 }

func (s *stuck) Name() string { return "stuck" }

func (s *stuck) Send(ctx context.Context, _ Copy) error {
	s.asked.Add(1)
	<-ctx.Done()
	return ctx.Err()
}

// taker is a sink that keeps what it gets.
type taker struct{ got chan Copy }

func (s *taker) Name() string { return "taker" }

func (s *taker) Send(_ context.Context, c Copy) error {
	s.got <- c
	return nil
}

func TestASinkThatNeverAnswersBlocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := &stuck{}, &taker{make(chan Copy, 100)}
		m := newLog(t, Options{Sinks: []Sink{bad, good}, Now: time.Now})
		m.begin(0)
		started := time.Now()
		for range 20 {
			m.records(1)
			m.checkpoint()
			synctest.Wait()
		}
		if time.Since(started) != 0 {
			t.Errorf("checkpoints took %v", time.Since(started))
		}
		ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		if err := m.log.Close(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(started); took != 5*time.Second {
			t.Errorf("closing took %v", took)
		}
		synctest.Wait()
		stats := m.log.Sinks()
		if stats[0].Dropped < 19 || stats[0].Sent != 0 || stats[1].Sent != 21 || stats[1].Dropped != 0 {
			t.Errorf("got %+v", stats)
		}
	})
}

func TestGrowthIsProvenFromMemoryAndFromTheLog(t *testing.T) {
	good := &taker{make(chan Copy, 1000)}
	m := newLog(t, Options{Sinks: []Sink{good}})
	m.begin(0)
	var copies []Copy
	for i := range maxHistory + 20 { // more than are remembered
		m.records(1 + i%3)
		m.checkpoint()
		copies = append(copies, <-good.got)
	}
	last := copies[len(copies)-1]
	for i, c := range copies {
		proof, err := last.Prove(context.Background(), c.Size)
		if err != nil {
			t.Fatal(err)
		}
		if i == len(copies)-1 {
			break
		}
		if err := tlog.CheckTree(proof, int64(last.Size), last.Root, int64(c.Size), c.Root); err != nil {
			t.Fatalf("from %d to %d: %v", c.Size, last.Size, err)
		}
	}
	if len(m.log.history.list) > maxHistory {
		t.Errorf("%d marks", len(m.log.history.list))
	}
	if _, err := copies[0].Prove(context.Background(), last.Size); err == nil {
		t.Error("growth backwards was proven")
	}
	m.close()
}

func TestVerificationBesideAWriterRaisesNoAlarm(t *testing.T) {
	m := newLog(t, Options{})
	m.begin(0)
	m.records(1)
	m.checkpoint()
	more, done := make(chan struct{}, 1), make(chan struct{})
	go func() { // it writes while the log is read, and no more than that needs
		defer close(done)
		i := 0
		for range more {
			for range 2 {
				m.records(3)
				if i++; i%50 == 0 {
					m.checkpoint()
				}
				if i%40 == 39 {
					m.end()
					m.begin(0)
				}
			}
		}
	}()
	times := 150
	if testing.Short() {
		times = 30
	}
	if os.Getenv("PIPEGUARD_EXHAUSTIVE") != "" {
		times = 1000
	}
	var most uint64
	for i := range times {
		more <- struct{}{}
		r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys()})
		if r.Verdict != VerdictIncomplete {
			t.Errorf("verification %d: %s %v", i, r.Verdict, r.Fault)
			break
		}
		most = max(most, r.LastSeq)
	}
	close(more)
	<-done
	m.close()
	t.Logf("%d verifications beside a writer of up to %d records", times, most)
}
