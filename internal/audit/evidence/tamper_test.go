package evidence

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// step is a line of a whole log and what a verification knows when it comes to it.
type step struct {
	line    []byte // with its newline
	segment int
	isFirst bool // of its segment
	at      walk // before it
	next    *step
}

// steps writes a log with the real writer and verifies it line by line. The root is that of all of it.
func steps(t *testing.T, records int) (all []*step, root tlog.Hash) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	key := newKey(t, origin)
	var kept *Log
	w, err := segment.Open(t.Context(), dir, segment.Options{SegmentBytes: 1 << 20, NoSync: true, OnFault: func(err error) { t.Error(err) }, Evidence: func(*segment.Found) (segment.Evidence, error) {
		var err error
		kept, err = Open(context.Background(), Options{Dir: dir, Keys: []*Key{key}})
		return kept, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if _, err := w.Append(t.Context(), &audit.Event{
			Type: audit.TypeConnection, Stage: audit.StageConnectionClosed, ID: fmt.Sprintf("connection %d", i),
			Who:     &audit.Who{Assurance: "pod", Pod: &audit.WhoPod{Namespace: "kube-system", Name: "csi-smb-node-J*b"}},
			Outcome: &audit.Outcome{Result: audit.ResultIdle, Code: "OK", Error: `C:\var\lib\"kubelet"` + "\n\u202e"},
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
	content := files(t, dir)
	var previous *step
	state := walk{next: 1, visit: func(*Record) error { return nil }}
	state.link(tlog.Hash{})
	tree := leafRange{}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(content)), func(name string) bool { _, ok := segment.EntryOf(name); return !ok })
	for n, name := range names {
		for i, line := range bytes.SplitAfter(bytes.TrimSuffix(content[name], []byte("\n")), []byte("\n")) {
			s := &step{line: append(bytes.TrimSuffix(line, []byte("\n")), '\n'), segment: n, isFirst: i == 0, at: state}
			if previous != nil {
				previous.next = s
			}
			all, previous = append(all, s), s
			if err := s.read(&state, s.line[:len(s.line)-1]); err != nil {
				t.Fatal(err)
			}
			tree.append(Leaf(s.line[:len(s.line)-1]))
		}
	}
	last, err := LastSigned(dir, nil, nil)
	if err != nil || last.Root != tree.root() || last.Size != uint64(len(all)) {
		t.Fatalf("%v: %d records of %d are signed", err, last.Size, len(all))
	}
	return all, last.Root
}

// read is what a verification does with a line in the place of s.
func (s *step) read(w *walk, raw []byte) error {
	r := Record{Line: 2}
	if s.isFirst {
		r.Line = 1
	}
	return w.record(&r, raw)
}

// refuses says whether a verification refuses other lines in the place of s, by the time it has read the one that followed s: text is what
// stands there, of whole lines or with an end that runs into the next line.
func (s *step) refuses(text []byte) bool {
	w := s.at
	if n := len(text); n == 0 || text[n-1] != '\n' {
		if s.next == nil || s.next.segment != s.segment {
			return true // the segment ends within a line: judged whole elsewhere
		}
		text = slices.Concat(text, s.next.line)
		if bytes.IndexByte(text, '\n') == len(text)-1 {
			return s.read(&w, text[:len(text)-1]) != nil
		}
	}
	first := true
	for raw := range bytes.Lines(text) {
		r := Record{Line: 2}
		if s.isFirst && first {
			r.Line = 1
		}
		first = false
		if w.record(&r, raw[:len(raw)-1]) != nil {
			return true
		}
	}
	if s.next == nil {
		return false
	}
	return s.next.read(&w, s.next.line[:len(s.next.line)-1]) != nil
}

// Every single-bit edit of a log of 10,000 records is tried, and every deletion, swap, duplication and insertion: each against what a verification
// knows before the line, with the code that it runs. That is as good as verifying the whole log each time (36 million times), since
// nothing behind a refused line is looked at, and nothing before it was changed. What is read of the last record in a segment
// is held by the next segment, or by the signed root; whole logs are verified in test/audit.
func TestEveryEditOfALongLogIsRefusedAtItsLine(t *testing.T) {
	every := 97 // a prime, so that it comes to every bit of a byte
	if os.Getenv("PIPEGUARD_EXHAUSTIVE") != "" {
		every = 1
	}
	all, root := steps(t, 10_000)
	var edits, bits, segments atomic.Int64
	segments.Store(int64(all[len(all)-1].segment + 1))
	last := all[len(all)-1]
	lastTree := leafRange{}
	for _, s := range all[:len(all)-1] {
		lastTree.append(Leaf(s.line[:len(s.line)-1]))
	}
	// changes says whether a line in the place of the last one makes another root.
	changes := func(text []byte) bool {
		tree := lastTree.clone()
		for raw := range bytes.Lines(text) {
			tree.append(Leaf(bytes.TrimSuffix(raw, []byte("\n"))))
		}
		return tree.root() != root
	}
	try := func(i int, what string, text []byte) {
		edits.Add(1)
		s := all[i]
		if !s.refuses(text) && (s != last || !changes(text)) {
			t.Errorf("record %d: %s is not refused", i+1, what)
		}
	}
	var workers sync.WaitGroup
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for !t.Failed() {
				i := int(next.Add(1)) - 1
				if i >= len(all) {
					return
				}
				s := all[i]
				edited := bytes.Clone(s.line)
				for bit := i % every; bit < len(s.line)*8; bit += every {
					edited[bit/8] ^= 1 << (bit % 8)
					bits.Add(1)
					try(i, fmt.Sprintf("bit %d", bit), edited)
					edited[bit/8] ^= 1 << (bit % 8)
				}
				other := all[(i+len(all)/2)%len(all)].line
				try(i, "the record twice", slices.Concat(s.line, s.line))
				try(i, "another record before it", slices.Concat(other, s.line))
				try(i, "an empty line before it", slices.Concat([]byte("\n"), s.line))
				if s != last { // a log that ends earlier is refused for its checkpoint
					try(i, "nothing", s.next.line)
					try(i, "the next one before it", slices.Concat(s.next.line, s.line))
					forged := fmt.Appendf(nil, `{"v":1,"seq":%d,"type":"connection","stage":"ConnectionClosed","prev":"%s"}`+"\n", s.at.next, s.at.last[:])
					try(i, "a record that was made to fit", forged)
					try(i, "one that was made to fit before it", slices.Concat(forged, s.line))
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d records in %d segments: %d bits and %d other edits", len(all), segments.Load(), bits.Load(), edits.Load()-bits.Load())
}
