package segment_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/test/audit/evidencetest"
)

// pruning is a log that removes what is too much, and what it tells of.
type pruning struct {
	dir  string
	key  *evidence.Key
	w    *segment.Writer
	tree *evidence.Log

	mu   sync.Mutex
	told []error
}

func newPruning(t *testing.T) *pruning {
	t.Helper()
	key, err := evidence.NewKey(evidence.Origin("node-1"))
	if err != nil {
		t.Fatal(err)
	}
	p := &pruning{dir: filepath.Join(t.TempDir(), "audit"), key: key}
	p.open(t)
	return p
}

func (p *pruning) open(t *testing.T) {
	t.Helper()
	last, err := evidence.LastSigned(p.dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.w, err = segment.Open(t.Context(), p.dir, segment.Options{
		Covered: last.Size, Fits: evidence.Fits(p.dir, last.Head), SegmentBytes: 2 * audit.MaxRecord, KeepBytes: 6 * audit.MaxRecord, NoSync: true, OnFault: p.tell,
		Evidence: func(*segment.Found) (segment.Evidence, error) {
			var err error
			p.tree, err = evidence.Open(context.Background(), evidence.Options{Dir: p.dir, Keys: []*evidence.Key{p.key}, Prunes: true, OnFault: p.tell})
			return p.tree, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (p *pruning) tell(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, err)
}

func (p *pruning) hear() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	told := p.told
	p.told = nil
	return told
}

// fill writes some segments, and waits for what is too much to be removed.
func (p *pruning) fill(t *testing.T) segment.Stats {
	t.Helper()
	p.write(t, 40)
	p.settle()
	return p.w.Stats()
}

// write appends so many records of 4 KB.
func (p *pruning) write(t *testing.T, n int) {
	t.Helper()
	for range n {
		e := &audit.Event{Type: audit.TypeRequest, Stage: audit.StageResponseComplete, ID: "a", What: &audit.What{Pipe: strings.Repeat("x", 4000)}, Outcome: &audit.Outcome{Result: audit.ResultOK}}
		if _, err := p.w.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// settle waits for what is too much to be removed.
func (p *pruning) settle() {
	time.Sleep(2 * time.Minute)
	synctest.Wait()
}

func (p *pruning) close(t *testing.T) {
	t.Helper()
	if err := errors.Join(p.w.Close(), p.tree.Close(context.Background())); err != nil {
		t.Error(err)
	}
}

func (p *pruning) verify(t *testing.T) {
	t.Helper()
	keys, err := evidence.ParseKeys(p.key.LogKey())
	if err != nil {
		t.Fatal(err)
	}
	r, err := evidence.Verify(context.Background(), evidence.VerifyOptions{Dir: p.dir, Keys: keys, AllowPruned: true, Outside: []string{evidencetest.Elsewhere(t, p.dir, p.key)}})
	if err != nil || r.Verdict != evidence.VerdictOK || r.FirstSeq == 1 {
		t.Errorf("%s from %d on, %v %v %v", r.Verdict, r.FirstSeq, r.Fault, r.Incomplete, err)
	}
}

// The process that writes a log knows the tree of what was removed. One that was changed beside the log stopped removal, or had the log begin with
// somebody's hashes, and no process could go on with it.
func TestAStartThatIsChangedWhileTheLogIsWrittenIsPutBack(t *testing.T) {
	start := func(p *pruning) string { return filepath.Join(p.dir, segment.StartFile) }
	another := "pipeguard.dev/audit-start/v1\n4\n" + strings.Repeat("A", 43) + "=\n"
	for name, change := range map[string]func(p *pruning) error{
		"removed":     func(p *pruning) error { return os.Remove(start(p)) },
		"emptied":     func(p *pruning) error { return os.WriteFile(start(p), nil, 0o600) },
		"another":     func(p *pruning) error { return os.WriteFile(start(p), []byte(another), 0o600) },
		"much larger": func(p *pruning) error { return os.WriteFile(start(p), []byte(strings.Repeat("x", 1<<20)), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPruning(t)
				if s := p.fill(t); s.Pruned == 0 {
					t.Fatalf("%+v", s)
				}
				p.hear()
				before := p.w.Stats().Pruned
				if err := change(p); err != nil {
					t.Fatal(err)
				}
				if s := p.fill(t); s.Pruned == before || s.Unpruned != nil || s.Unsigned != nil {
					t.Errorf("%+v", s)
				}
				if told := p.hear(); len(told) != 1 || !errors.Is(told[0], evidence.ErrStartChanged) {
					t.Errorf("told %v", told)
				}
				if err := change(p); err != nil {
					t.Fatal(err)
				}
				p.close(t) // puts it back as well
				p.verify(t)
				p.open(t)
				if s := p.fill(t); s.Unpruned != nil {
					t.Error(s.Unpruned)
				}
				p.close(t)
				p.verify(t)
			})
		})
	}
}

// What stands in the way of the file is told, by the state of the log too, until it has gone.
func TestAStartThatCannotBePutBackIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPruning(t)
		p.fill(t)
		start := filepath.Join(p.dir, segment.StartFile)
		if err := errors.Join(os.Remove(start), os.Mkdir(start, 0o700)); err != nil {
			t.Fatal(err)
		}
		p.hear()
		if s := p.fill(t); !errors.Is(s.Unsigned, evidence.ErrStartChanged) || s.Unpruned == nil || s.Err != nil {
			t.Errorf("with a directory in its place: %+v", s)
		}
		if told := p.hear(); len(told) != 2 {
			t.Errorf("told %v", told)
		}
		if left, err := filepath.Glob(filepath.Join(p.dir, ".*")); err != nil || len(left) > 1 {
			t.Errorf("attempts left %q, %v", left, err)
		}
		if err := os.Remove(start); err != nil {
			t.Fatal(err)
		}
		if s := p.fill(t); s.Unsigned != nil || s.Unpruned != nil || s.Bytes > 8*audit.MaxRecord {
			t.Errorf("when it has gone: %+v", s)
		}
		if told := p.hear(); !slices.ContainsFunc(told, func(err error) bool { return err == nil }) {
			t.Errorf("told %v", told)
		}
		p.close(t)
		p.verify(t)
	})
}

// A tree that was put beside a log of which nothing was removed yet was taken for what removal had left, and the log could not be gone on with.
func TestAStartThatWasPutBesideAWholeLogIsNotItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPruning(t)
		p.close(t)
		planted := fmt.Appendf(nil, "pipeguard.dev/audit-start/v1\n%d\n%s=\n", 1<<40, strings.Repeat("A", 43))
		if err := os.WriteFile(filepath.Join(p.dir, segment.StartFile), planted, 0o600); err != nil {
			t.Fatal(err)
		}
		p.open(t)
		if s := p.fill(t); s.Pruned == 0 {
			t.Errorf("%+v", s)
		}
		p.close(t)
		p.verify(t)
		p.open(t)
		p.close(t)
	})
}

// A closed segment that was changed stays, with all behind it, for whoever looks into it. The state of the log says so: its bound no longer holds.
func TestALogThatRemovesNothingSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPruning(t)
		p.fill(t)
		segments, err := filepath.Glob(filepath.Join(p.dir, "audit-*"))
		if err != nil || len(segments) < 2 {
			t.Fatal(segments, err)
		}
		content, err := os.ReadFile(segments[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(segments[0], append(slices.Clip(content), 'x'), 0o600); err != nil {
			t.Fatal(err)
		}
		p.hear()
		before := p.w.Stats().Pruned
		for range 3 {
			if s := p.fill(t); s.Pruned != before || s.Unpruned == nil || !strings.Contains(s.Unpruned.Error(), filepath.Base(segments[0])) {
				t.Errorf("%+v", s)
			}
		}
		if told := p.hear(); len(told) != 1 {
			t.Errorf("told %v", told)
		}
		if err := os.WriteFile(segments[0], content, 0o600); err != nil {
			t.Fatal(err)
		}
		if s := p.fill(t); s.Pruned == before || s.Unpruned != nil {
			t.Errorf("%+v", s)
		}
		if told := p.hear(); len(told) != 1 || told[0] != nil {
			t.Errorf("told %v", told)
		}
		p.close(t)
		p.verify(t)
	})
}

// A log that is being written has room for its next start beside it. That is not said to those who read records.
func TestTheRoomThatAWriterKeepsIsNoStray(t *testing.T) {
	p := newPruning(t)
	room, err := filepath.Glob(filepath.Join(p.dir, ".start-*"))
	if err != nil || len(room) > 1 || len(room) == 0 && runtime.GOOS != "windows" { // Wine's files keep no room
		t.Fatalf("kept are %q, %v", room, err)
	}
	for name, list := range map[string]func(string) ([]evidence.Part, []segment.Stray, error){"List": evidence.List, "ListAll": evidence.ListAll} {
		if parts, strays, err := list(p.dir); err != nil || len(parts) != 1 || len(strays) != 0 {
			t.Errorf("%s: %v, strays %v, %v", name, parts, strays, err)
		}
	}
	planted := filepath.Join(p.dir, ".start-1")
	if err := os.WriteFile(planted, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, strays, err := evidence.List(p.dir); err != nil || len(strays) != 1 || strays[0].Path != planted {
		t.Errorf("one that holds something: %v, %v", strays, err)
	}
	p.close(t)
	p.open(t) // removes it
	p.close(t)
	if left, err := filepath.Glob(filepath.Join(p.dir, ".*")); err != nil || len(left) != 0 {
		t.Errorf("left are %q, %v", left, err)
	}
}
