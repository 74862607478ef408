//go:build unix

package query_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/query"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// living is a log that is written while it is followed.
type living struct {
	t    *testing.T
	dir  string
	key  *evidence.Key
	w    *segment.Writer
	tree *evidence.Log
	n    int
	keep int64 // bytes; 0 keeps all
}

func live(t *testing.T, keep int64) *living {
	t.Helper()
	key, err := evidence.NewKey(evidence.Origin("node-1"))
	if err != nil {
		t.Fatal(err)
	}
	l := &living{t: t, dir: filepath.Join(t.TempDir(), "log"), key: key, keep: keep}
	l.start()
	return l
}

func (l *living) start() {
	l.t.Helper()
	last, err := evidence.LastSigned(l.dir, []*evidence.Key{l.key}, nil)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		l.t.Error(err)
		return
	}
	var tree *evidence.Log
	w, err := segment.Open(context.Background(), l.dir, segment.Options{
		Covered: last.Size, Fits: evidence.Fits(l.dir, last.Head), SegmentBytes: 2 * audit.MaxRecord, KeepBytes: l.keep,
		Evidence: func(*segment.Found) (segment.Evidence, error) {
			var err error
			tree, err = evidence.Open(context.Background(), evidence.Options{Dir: l.dir, Keys: []*evidence.Key{l.key}, Prunes: true})
			return tree, err
		},
	})
	if err != nil {
		l.t.Error(err)
		return
	}
	l.w, l.tree = w, tree
}

func (l *living) stop() {
	l.t.Helper()
	if err := errors.Join(l.w.Close(), l.tree.Close(context.Background())); err != nil {
		l.t.Fatal(err)
	}
}

// write writes records, and waits until they are signed.
func (l *living) write(records, length int) {
	l.t.Helper()
	for range records {
		l.n++
		e := &audit.Event{
			Type: audit.TypeRequest, Stage: audit.StageResponseComplete, ID: fmt.Sprint("R", l.n), What: &audit.What{Method: strings.Repeat("M", length)},
			Decision: &audit.Decision{Effect: audit.EffectAllow, Rule: "r"}, Outcome: &audit.Outcome{Result: audit.ResultOK},
		}
		if _, err := l.w.Append(context.Background(), e); err != nil {
			l.t.Fatal(err)
		}
	}
	time.Sleep(2 * time.Second)
}

// forged is a record that follows on the last one of the log, as somebody without its key writes it.
func (l *living) forged() string {
	l.t.Helper()
	last := l.lines()[len(l.lines())-1]
	p, _, err := segment.PlaceOf([]byte(last))
	if err != nil {
		l.t.Fatal(err)
	}
	e := audit.Event{
		V: audit.Version, Seq: p.Seq + 1, Type: audit.TypeRequest, Stage: audit.StageResponseComplete, ID: "FORGED", Time: time.Now(), Session: "s",
		Prev: evidence.Leaf([]byte(last)).String(), Decision: &audit.Decision{Effect: audit.EffectAllow}, Outcome: &audit.Outcome{Result: audit.ResultOK},
	}
	return strings.TrimSuffix(string(must(audit.Encode(nil, e))), "\n")
}

// lines are those of all segments.
func (l *living) lines() (all []string) {
	l.t.Helper()
	names := must(filepath.Glob(filepath.Join(l.dir, "audit-*.jsonl")))
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil { // somebody may have put something else there
			all = append(all, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
		}
	}
	return all
}

func (l *living) last() string {
	names := must(filepath.Glob(filepath.Join(l.dir, "audit-*.jsonl")))
	return names[len(names)-1]
}

func (l *living) add(text string) {
	f := must(os.OpenFile(l.last(), os.O_APPEND|os.O_WRONLY, 0o600))
	defer f.Close() //nolint:errcheck // a test's
	must(f.WriteString(text))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// What is shown of a log that is followed with its key is what was signed, whatever else is written into its directory, and what is not shown is told.
func TestWhatIsFollowedIsWhatWasSigned(t *testing.T) {
	for name, c := range map[string]struct {
		act  func(l *living)
		want string // what comes: numbers of records that are the log's at the end, and what is told
	}{
		"nothing else":    {func(l *living) { l.write(3, 10); l.write(2, 10) }, "3 4 5 6 7"},
		"a restart":       {func(l *living) { l.write(1, 10); l.stop(); l.start(); l.write(1, 10) }, "3 4 5 6"},
		"many segments":   {func(l *living) { l.write(5, 30_000); l.write(5, 30_000) }, "3 4 5 6 7 8 9 10 11 12"},
		"records go away": {func(l *living) { l.write(60, 30_000); l.write(2, 10) }, "…"},
		"a segment is packed": {func(l *living) {
			l.write(5, 30_000)
			name := must(filepath.Glob(filepath.Join(l.dir, "audit-*.jsonl")))[0]
			f := must(os.Create(name + ".gz"))
			z := gzip.NewWriter(f)
			must(z.Write(must(os.ReadFile(name))))
			if err := errors.Join(z.Close(), f.Close(), os.Remove(name)); err != nil {
				l.t.Error(err)
			}
			time.Sleep(2 * time.Second) // the log's own process looks once a second whether its segment is there
			l.write(5, 30_000)
		}, "3 4 5 6 7 8 9 10 11 12 …"},
		"a fork beside a stopped log": {func(l *living) {
			l.stop()
			time.Sleep(5 * time.Second)
			fork := strings.Replace(l.forged(), `"type":"request","stage":"ResponseComplete"`, `"type":"log","stage":"LogOpen"`, 1)
			fork = strings.Replace(fork, `,"prev"`, fmt.Sprintf(`,"log":{"previous_segment":%q,"previous_bytes":%d,"torn_bytes":0},"prev"`, filepath.Base(l.last()), must(os.Stat(l.last())).Size()), 1)
			name := filepath.Join(l.dir, segment.Name(4))
			if err := os.WriteFile(name, []byte(fork+"\n"), 0o600); err != nil {
				l.t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			l.start()
			l.write(2, 10)
		}, "3 4 5 6"},
		"a record is appended": {func(l *living) { l.add(l.forged() + "\n"); l.write(2, 10); time.Sleep(5 * time.Second) }, "changed"},
		"a zero byte":          {func(l *living) { l.add("\x00"); l.write(2, 10); time.Sleep(5 * time.Second) }, "changed"},
		"a long line":          {func(l *living) { l.add(strings.Repeat("x", 3<<20) + "\n"); l.write(2, 10); time.Sleep(5 * time.Second) }, "changed"},
		"a file that cannot be read": {func(l *living) {
			name := filepath.Join(l.dir, segment.Name(3))
			if err := os.Symlink(name, name); err != nil {
				l.t.Error(err)
			}
			l.write(2, 10)
			time.Sleep(5 * time.Second)
		}, "changed"},
		"another log of the key, which is longer": {func(l *living) {
			l.write(3, 10)
			l.stop()
			time.Sleep(2 * time.Second)
			for _, e := range must(os.ReadDir(l.dir)) {
				if err := os.Remove(filepath.Join(l.dir, e.Name())); err != nil {
					l.t.Error(err)
				}
			}
			l.start()
			l.write(20, 10)
			time.Sleep(5 * time.Second)
		}, "3 4 5 6 changed"},
		"the last segment is gone, and its checkpoints": {func(l *living) {
			before := must(os.ReadFile(filepath.Join(l.dir, evidence.CheckpointFile)))
			l.write(1, 10)
			l.stop()
			l.start()
			l.write(1, 10)
			l.stop()
			time.Sleep(2 * time.Second)
			if err := errors.Join(os.Remove(l.last()), os.WriteFile(filepath.Join(l.dir, evidence.CheckpointFile), before, 0o600)); err != nil {
				l.t.Error(err)
			}
			time.Sleep(6 * time.Second)
			l.start()
		}, "3 4 5 6 7 changed"},
		"another directory": {func(l *living) {
			if err := errors.Join(os.Rename(l.dir, l.dir+"-old"), os.CopyFS(l.dir, os.DirFS(l.dir+"-old"))); err != nil {
				l.t.Error(err)
			}
		}, "changed"},
		"an older state": {func(l *living) {
			before := map[string][]byte{}
			for _, e := range must(os.ReadDir(l.dir)) {
				before[e.Name()] = must(os.ReadFile(filepath.Join(l.dir, e.Name())))
			}
			l.write(2, 10)
			l.stop()
			time.Sleep(2 * time.Second)
			for _, e := range must(os.ReadDir(l.dir)) {
				if err := os.Remove(filepath.Join(l.dir, e.Name())); err != nil {
					l.t.Fatal(err)
				}
			}
			for name, text := range before {
				if err := os.WriteFile(filepath.Join(l.dir, name), text, 0o600); err != nil {
					l.t.Fatal(err)
				}
			}
			time.Sleep(5 * time.Second)
			l.start()
		}, "3 4 5 changed"},
		"checkpoints are removed": {func(l *living) {
			for range 30 {
				if err := os.Remove(filepath.Join(l.dir, evidence.CheckpointFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
					l.t.Fatal(err)
				}
				l.write(1, 10)
			}
		}, "unsigned …"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := live(t, 8*audit.MaxRecord)
				l.write(1, 10)
				keys := must(evidence.ParseKeys(l.key.LogKey()))
				at := must(evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: l.dir, Keys: keys})).Position
				if at.Last() != 2 {
					t.Fatalf("signed up to %d", at.Last())
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer stop()
					time.Sleep(time.Millisecond) // the first look knows the directory
					c.act(l)
					time.Sleep(3 * time.Second)
				}()
				var got []string
				raw := map[uint64]string{}
				next := uint64(3)
				for r, err := range query.FollowVerified(ctx, l.dir, evidence.VerifyOptions{Keys: keys, AllowPruned: true}, at, time.Second) {
					switch {
					case errors.Is(err, query.ErrEnd):
					case errors.As(err, new(*query.Changed)):
						got = append(got, "changed")
						t.Log(err)
					case errors.As(err, new(*query.Unsigned)):
						got = append(got, "unsigned")
					case err != nil:
						t.Error(err)
					default:
						if r.Seq != next+r.Missing {
							t.Errorf("record %d after %d", r.Seq, next-1)
						}
						next = r.Seq + 1
						raw[r.Seq] = string(r.Raw)
						got = append(got, fmt.Sprint(r.Seq))
					}
				}
				<-done
				for _, line := range l.lines() {
					p, _, err := segment.PlaceOf([]byte(line))
					if was, ok := raw[p.Seq]; err == nil && ok && was != line && !strings.Contains(line, "FORGED") && !slices.Contains(got, "changed") {
						t.Errorf("record %d was shown as %s, and is %s", p.Seq, was, line)
					}
				}
				for seq, line := range raw {
					if strings.Contains(line, "FORGED") {
						t.Errorf("record %d was shown as %s", seq, line)
					}
				}
				text := strings.Join(got, " ")
				if begin, isPrefix := strings.CutSuffix(c.want, "…"); isPrefix {
					if !strings.HasPrefix(text, begin) || begin == "" && len(got) < 7 {
						t.Errorf("got %s, want %s", text, c.want)
					}
				} else if diff := cmp.Diff(c.want, text); diff != "" {
					t.Error(diff)
				}
				_ = errors.Join(l.w.Close(), l.tree.Close(context.Background()))
			})
		})
	}
}

// A record is read twice, to be verified and to be shown. What stood there only the second time is not shown, and what stands there in the end is.
func TestWhatIsChangedBetweenItsVerificationAndItsReadingIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := live(t, 0)
		l.write(1, 10)
		keys := must(evidence.ParseKeys(l.key.LogKey()))
		at := must(evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: l.dir, Keys: keys})).Position
		l.write(200, 6000)
		records := len(l.lines()) - int(at.Last()) //nolint:gosec // two
		first := must(filepath.Glob(filepath.Join(l.dir, "audit-*.jsonl")))[0]
		replace := func(old, new string) (isThere bool) {
			text := must(os.ReadFile(first))
			i := bytes.LastIndex(text, []byte(old))
			if i < 0 {
				return false
			}
			f := must(os.OpenFile(first, os.O_WRONLY, 0))
			defer f.Close() //nolint:errcheck // a test's
			must(f.WriteAt([]byte(new), int64(i)))
			return true
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		isChanged := false
		o := evidence.VerifyOptions{Keys: keys, Progress: func(int64, int64) { // the first segment was read by then
			if !isChanged && replace("MMMM", "EVIL") {
				isChanged = true
				time.AfterFunc(1500*time.Millisecond, func() { replace("EVIL", "MMMM") })
			}
		}}
		time.AfterFunc(10*time.Second, stop)
		var got []uint64
		for r, err := range query.FollowVerified(ctx, l.dir, o, at, time.Second) {
			switch {
			case errors.Is(err, query.ErrEnd):
			case err != nil:
				t.Error(err)
			case bytes.Contains(r.Raw, []byte("EVIL")):
				t.Errorf("record %d was shown as nobody wrote it", r.Seq)
			default:
				got = append(got, r.Seq)
			}
		}
		if !isChanged || len(got) != records || got[0] != at.Last()+1 || got[len(got)-1] != at.Last()+uint64(len(got)) {
			t.Errorf("changed: %t; %d records", isChanged, len(got))
		}
		l.stop()
	})
}
