package audit

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/test/audit/evidencetest"
)

// content is a directory of a log by the names of its files.
type content map[string][]byte

// long is a log of some thousand operations, connections and denials, as the real writer keeps it, with what was held elsewhere.
type long struct {
	content
	names   []string // of the segments, in order
	vkey    string
	keys    evidence.Keys
	outside string    // file with its last checkpoint
	past    []content // the directory as it was before, each time a checkpoint was signed
}

// event is one of the records that a proxy writes most.
func event(i int) *audit.Event {
	e := &audit.Event{
		Type: audit.TypeRequest, Stage: audit.StageResponseComplete, ID: fmt.Sprintf("R%d", i),
		Who:      &audit.Who{Assurance: "pod", Pod: &audit.WhoPod{Namespace: "kube-system", Name: "csi-smb-node-x7k2p", ServiceAccount: "csi-smb"}},
		What:     &audit.What{Pipe: "csi-proxy-filesystem-v1", Method: "Mkdir", Targets: []audit.Target{{Kind: "path", Value: fmt.Sprintf(`C:\var\lib\kubelet\pods\%d`, i)}}},
		Decision: &audit.Decision{Effect: audit.EffectAllow, Reason: "allowed by rule csi-smb"}, // of refusals a log takes only so many
		Outcome:  &audit.Outcome{Result: audit.ResultOK, Code: "OK", LatencyUS: int64(i)},
	}
	if i%3 == 0 {
		e = &audit.Event{Type: audit.TypeConnection, Stage: audit.StageConnectionClosed, ID: fmt.Sprintf("C%d", i), Outcome: &audit.Outcome{Result: audit.ResultOK, Code: "OK"}}
	}
	return e
}

// longLog writes it, with many segments: of 10,000 records if PIPEGUARD_SAMPLES or PIPEGUARD_EXHAUSTIVE asks for many edits, or else of fewer.
func longLog(t *testing.T) *long {
	t.Helper()
	records := 2000
	if os.Getenv("PIPEGUARD_EXHAUSTIVE") != "" || os.Getenv("PIPEGUARD_SAMPLES") != "" {
		records = 10_000
	}
	dir := filepath.Join(t.TempDir(), "log")
	key, err := evidence.NewKey(evidence.Origin("node-1"))
	if err != nil {
		t.Fatal(err)
	}
	l := &long{vkey: key.LogKey()}
	if l.keys, err = evidence.ParseKeys(l.vkey); err != nil {
		t.Fatal(err)
	}
	var kept *evidence.Log
	w, err := segment.Open(t.Context(), dir, segment.Options{SegmentBytes: int64(records) * 105, NoSync: true, OnFault: func(err error) { t.Error(err) }, Evidence: func(*segment.Found) (segment.Evidence, error) {
		var err error
		kept, err = evidence.Open(context.Background(), evidence.Options{Dir: dir, Keys: []*evidence.Key{key}})
		return kept, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if _, err := w.Append(t.Context(), event(i)); err != nil {
			t.Fatal(err)
		}
		if i%(records/10) == records/20 {
			if err := kept.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.past = append(l.past, readLog(t, dir))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := kept.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.outside = evidencetest.Elsewhere(t, dir, key)
	l.content = readLog(t, dir)
	for name := range l.content {
		if _, ok := segment.ParseName(name); ok {
			l.names = append(l.names, name)
		}
	}
	slices.Sort(l.names)
	if len(l.names) < 4 {
		t.Fatalf("only %d segments", len(l.names))
	}
	return l
}

// readLog reads a directory, without the writer's lock.
func readLog(t *testing.T, dir string) content {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := content{}
	for _, e := range entries {
		if e.Name() == "lock" {
			continue
		}
		if c[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// write makes a directory hold this content and nothing else. What it holds already is not written again.
func (c content) write(t *testing.T, dir string, before content) {
	t.Helper()
	for name := range before {
		if _, stays := c[name]; !stays {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range c {
		if was, there := before[name]; !there || !bytes.Equal(was, text) {
			put(t, filepath.Join(dir, name), text)
		}
	}
}

// lines of a segment, each with its newline.
func (l *long) lines(name string) [][]byte {
	lines := bytes.SplitAfter(l.content[name], []byte("\n"))
	return lines[:len(lines)-1]
}

// part names a place for people.
func part(name string) string {
	_, after, _ := strings.Cut(name, "audit-")
	return strings.TrimLeft(strings.SplitN(after, "-", 2)[0], "0")
}
