package proxy

import (
	"bytes"
	"cmp"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/test/audit/recorded"
)

// seen is a log of segments, of which memory keeps what is durable.
type seen struct {
	*segment.Writer
	memory *memoryLog
}

// see opens a log of segments.
func see(t testing.TB, memory *memoryLog, open func(segment.Options) (*segment.Writer, error), o segment.Options) *seen {
	t.Helper()
	o.OnRecord = func(line []byte) {
		e, err := audit.Parse(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Errorf("%v: %s", err, line)
			return
		}
		memory.add(e)
	}
	w, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	return &seen{w, memory}
}

// add keeps a record as it is.
func (l *memoryLog) add(e audit.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	close(l.changed)
	l.changed = make(chan struct{})
}

// segments are the records in the files of a directory, in the order of the files' names, which begin with their first numbers.
func segments(t testing.TB, dir string) []audit.Event {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(a, b) })
	var events []audit.Event
	for _, file := range files {
		for e, err := range recorded.Events(file) {
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			events = append(events, e)
		}
	}
	return events
}

func TestEveryMethodLeavesItsRecordsInSegments(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		memory := newMemoryLog()
		log := see(t, memory, func(o segment.Options) (*segment.Writer, error) { return segment.Open(t.Context(), dir, o) },
			segment.Options{SegmentBytes: 256 << 10, NoSync: true})
		m := newMatrix(t, func(o *Options) { o.Audit = log })
		m.log = memory
		m.fill()
		if err := m.stop(); err != nil {
			t.Error(err)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	events := segments(t, dir)
	report, err := recorded.Reconcile(recorded.All(events))
	if err != nil || report.FaultCount > 0 || len(report.Open) > 0 || report.Sessions != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	if report.Intents < fewestMethods*(len(endings)-1) || report.Terminals != report.Intents/(len(endings)-1)*len(endings) || len(files) < 3 {
		t.Errorf("%d intents and %d ends in %d files", report.Intents, report.Terminals, len(files))
	}
}
