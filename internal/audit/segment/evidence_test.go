package segment_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// openSigned opens a log with the evidence that signs it, as programs do.
func openSigned(t *testing.T, dir string, key *evidence.Key, o segment.Options) (*segment.Writer, *evidence.Log) {
	t.Helper()
	last, err := evidence.LastSigned(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Covered, o.Fits = last.Size, evidence.Fits(dir, last.Head)
	var log *evidence.Log
	o.Evidence = func(*segment.Found) (segment.Evidence, error) {
		var err error
		log, err = evidence.Open(context.Background(), evidence.Options{Dir: dir, Keys: []*evidence.Key{key}})
		return log, err
	}
	w, err := segment.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return w, log
}

func TestALogOfManySegmentsAndStartsIsVerified(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	key, err := evidence.NewKey(evidence.Origin("node-1"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := evidence.ParseKeys(key.LogKey())
	if err != nil {
		t.Fatal(err)
	}
	for run := range 3 {
		w, log := openSigned(t, dir, key, segment.Options{SegmentBytes: 2 * audit.MaxRecord})
		for i := range 60 {
			e := &audit.Event{Type: audit.TypeRequest, Stage: audit.StageRequestReceived, ID: fmt.Sprintf("%d-%d", run, i)}
			if e.IntentSeq, err = w.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			e.Stage, e.Outcome = audit.StageResponseComplete, &audit.Outcome{Result: audit.ResultOK, Code: "OK"}
			if i == 30 { // has no end
				continue
			}
			if _, err = w.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), log.Close(context.Background())); err != nil {
			t.Fatal(err)
		}
		report, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: dir, Keys: keys})
		if err != nil || report.Fault != nil || report.Verdict == evidence.VerdictTampered {
			t.Fatalf("run %d: %+v %v %v", run, report, report.Fault, err)
		}
		if report.OwnCovered != report.LastSeq || report.LastSeq < 120 || report.FirstSeq != 1 {
			t.Errorf("run %d: covered up to %d of %d to %d", run, report.OwnCovered, report.FirstSeq, report.LastSeq)
		}
	}
}

func TestAPrunedLogIsVerifiedAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "audit")
		key, err := evidence.NewKey(evidence.Origin("node-1"))
		if err != nil {
			t.Fatal(err)
		}
		keys, err := evidence.ParseKeys(key.LogKey())
		if err != nil {
			t.Fatal(err)
		}
		for run := range 3 {
			w, log := openSigned(t, dir, key, segment.Options{SegmentBytes: 2 * audit.MaxRecord, KeepBytes: 4 * audit.MaxRecord, OnFault: func(err error) { t.Error(err) }})
			for i := range 200 {
				e := &audit.Event{Type: audit.TypeRequest, Stage: audit.StageResponseComplete, ID: fmt.Sprintf("%d-%d", run, i), Outcome: &audit.Outcome{Result: audit.ResultOK, Code: "OK"}}
				if _, err = w.Append(t.Context(), e); err != nil {
					t.Fatal(err)
				}
				if i%50 == 0 {
					time.Sleep(3 * time.Second)
				}
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if s := w.Stats(); s.Pruned == 0 || s.Bytes > 4*audit.MaxRecord {
				t.Errorf("%+v", s)
			}
			if err := errors.Join(w.Close(), log.Close(context.Background())); err != nil {
				t.Fatal(err)
			}
			report, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: dir, Keys: keys, AllowPruned: true})
			if err != nil || report.Fault != nil || report.Verdict == evidence.VerdictTampered || report.FirstSeq == 1 || report.OwnCovered != report.LastSeq {
				t.Fatalf("run %d: %+v %v %v", run, report, report.Fault, err)
			}
		}
	})
}

// What was added to a log between two starts is declared by the second, and whoever added it may take it away again.
func TestWhatALogDeclaresIsReportedAlsoWhenItIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	key, err := evidence.NewKey(evidence.Origin("node-1"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := evidence.ParseKeys(key.LogKey())
	if err != nil {
		t.Fatal(err)
	}
	run := func() {
		t.Helper()
		w, log := openSigned(t, dir, key, segment.Options{})
		_, err := w.Append(t.Context(), &audit.Event{Type: audit.TypeRequest, Stage: audit.StageResponseComplete, ID: "one", Outcome: &audit.Outcome{Result: audit.ResultOK, Code: "OK"}})
		if err = errors.Join(err, w.Close(), log.Close(context.Background())); err != nil {
			t.Fatal(err)
		}
	}
	verify := func() evidence.Report {
		t.Helper()
		r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: dir, Keys: keys})
		if err != nil || r.Fault != nil || r.Verdict == evidence.VerdictTampered {
			t.Fatalf("%+v %v", r, err)
		}
		return r
	}
	run()
	if r := verify(); len(r.Declared) > 0 {
		t.Errorf("a log without faults declares %q", r.Declared)
	}
	names, err := filepath.Glob(filepath.Join(dir, "audit-*"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	whole, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	added := bytes.Replace(lines[len(lines)-2], []byte(`"LogClose"`), []byte(`"LogCloze"`), 1)
	planted := filepath.Join(dir, segment.Name(uint64(len(lines))))
	err = errors.Join(os.WriteFile(names[0], append(whole, added...), 0o600), os.WriteFile(planted, []byte("{\"evil\":1}\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	run()
	r := verify()
	if r.IgnoredBytes != int64(len(added)+len("{\"evil\":1}\n")) || len(r.Void) != 1 || len(r.Declared) != 1 || !strings.Contains(r.Declared[0], "stand behind the record that closed") {
		t.Errorf("what was added: %d bytes, %q, %q", r.IgnoredBytes, r.Void, r.Declared)
	}
	if err := errors.Join(os.WriteFile(names[0], whole, 0o600), os.Remove(planted)); err != nil {
		t.Fatal(err)
	}
	r = verify()
	all := strings.Join(r.Declared, "\n")
	for _, want := range []string{
		"stand behind the record that closed",
		fmt.Sprintf("%d bytes stood behind the last record of %s, and none do now", len(added), filepath.Base(names[0])),
		fmt.Sprintf("no record counts in %s, and it is not here", filepath.Base(planted)),
	} {
		if !strings.Contains(all, want) {
			t.Errorf("taken away again: %q is not in\n%s", want, all)
		}
	}
	if len(r.Declared) != 3 || r.IgnoredBytes != 0 {
		t.Errorf("%d bytes, %q", r.IgnoredBytes, r.Declared)
	}
}
