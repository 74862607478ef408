package evidence_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/test/audit/evidencetest"
)

func TestALogOfTheRealWriterIsVerified(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	key, err := evidence.NewKey(evidence.Origin("node-1"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := evidence.ParseKeys(key.LogKey())
	if err != nil {
		t.Fatal(err)
	}
	for run := range 4 {
		var kept *evidence.Log
		last, err := evidence.LastSigned(dir, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := segment.Open(t.Context(), dir, segment.Options{
			SegmentBytes: 20_000, Covered: last.Size, OnFault: func(err error) {
				if run != 2 || !strings.Contains(err.Error(), "stand behind the record that closed") {
					t.Error(err)
				}
			},
			Evidence: func(*segment.Found) (segment.Evidence, error) {
				var err error
				kept, err = evidence.Open(context.Background(), evidence.Options{Dir: dir, Keys: []*evidence.Key{key}})
				return kept, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if _, err := w.Append(t.Context(), &audit.Event{
				Type: audit.TypeConnection, Stage: audit.StageConnectionClosed, ID: "x", Outcome: &audit.Outcome{Result: audit.ResultIdle, Error: strings.Repeat("x", 300)},
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := kept.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: dir, Keys: keys, Outside: []string{evidencetest.Elsewhere(t, dir, key)}, AllowPruned: true})
		if err != nil || r.Verdict != evidence.VerdictOK || r.LastSeq < uint64(100*(run+1)) {
			t.Fatalf("run %d: %v %+v, fault %v", run, err, r, r.Fault)
		}
		if run == 1 { // something was put behind its end
			newest := ""
			entries, _ := os.ReadDir(dir)
			for _, e := range entries {
				if strings.HasPrefix(e.Name(), "audit-") {
					newest = e.Name()
				}
			}
			f, err := os.OpenFile(filepath.Join(dir, newest), os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = f.WriteString(`{"v":1,"seq":2` + "\x00\x00\n\x00")
			_ = f.Close()
		}
	}
}
