package query_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/query"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/test/audit/hostile"
)

// longLog is a log of so many records, and the keys of it.
func longLog(t testing.TB, records int, segmentBytes int64) (files map[string][]byte, keys evidence.Keys) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	key, err := evidence.NewKey(evidence.Origin("node-1"))
	if err != nil {
		t.Fatal(err)
	}
	if keys, err = evidence.ParseKeys(key.LogKey()); err != nil {
		t.Fatal(err)
	}
	var tree *evidence.Log
	w, err := segment.Open(t.Context(), dir, segment.Options{SegmentBytes: segmentBytes, NoSync: true, Evidence: func(*segment.Found) (segment.Evidence, error) {
		tree, err = evidence.Open(context.Background(), evidence.Options{Dir: dir, Keys: []*evidence.Key{key}})
		return tree, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	texts := hostile.Texts()
	for i := range records {
		e := hostile.Event(texts[i%len(texts)])
		if i%3 > 0 {
			e = audit.Event{Type: audit.TypeConnection, Stage: audit.StageConnectionClosed, ID: fmt.Sprint(i), Who: &audit.Who{Assurance: "none"}}
		}
		if _, err := w.Append(t.Context(), &e); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), tree.Checkpoint(t.Context()), tree.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files, keys
}

// transcript is all that a reader is told of a log with so many processors: with one, lines are read and judged one after the other.
func transcript(t *testing.T, processors int, most int, open func() (*query.Source, error)) string {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
	s, err := open()
	if err != nil {
		return err.Error()
	}
	var said strings.Builder
	n := 0
	for r, err := range s.Records() {
		fmt.Fprintf(&said, "%s %d %q missing %d loose %q %v", r.File, r.Line, r.Raw, r.Missing, r.Loose, r.IsBroken)
		if err != nil {
			fmt.Fprintf(&said, " error %v", err)
		} else {
			line, err := audit.Encode(nil, r.Event)
			fmt.Fprintf(&said, " %q %v", line, err)
		}
		if bad, ok := errors.AsType[*query.BadLine](err); ok {
			fmt.Fprintf(&said, " gap %v bytes %d torn %v", bad.IsGap, bad.Bytes, bad.Torn)
		}
		said.WriteString("\n")
		if n++; n == most {
			break
		}
	}
	for _, l := range s.Logs() {
		fmt.Fprintf(&said, "%+v %v %d %q %v\n", l.Standing(), l.Silent(), l.Loose, l.First, l.Unread)
	}
	return said.String()
}

// spoil does one thing to a log that a writer does not.
func spoil(t *testing.T, r *rand.Rand, files map[string][]byte) (what string) {
	t.Helper()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, ok := segment.ParseName(name); ok {
			names = append(names, name)
		}
	}
	name := names[r.IntN(len(names))]
	text := bytes.Clone(files[name])
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines = lines[:len(lines)-1]
	i, j := r.IntN(len(lines)), r.IntN(len(lines))
	insert := func(line string) { lines = slices.Insert(lines, i, []byte(line)) }
	kind := r.IntN(18)
	switch kind {
	case 0:
		text[r.IntN(len(text))] ^= 1 << r.IntN(8)
		lines = [][]byte{text}
	case 1:
		lines = slices.Delete(lines, i, i+1)
	case 2:
		lines[i], lines[j] = lines[j], lines[i]
	case 3:
		insert(string(lines[j]))
	case 4:
		lines = [][]byte{text[:r.IntN(len(text))]}
	case 5:
		insert("\n")
	case 6:
		insert(strings.Repeat("x", audit.MaxRecord+r.IntN(3)-1) + "\n")
	case 7:
		insert(strings.Repeat("x", segment.MaxLost+10) + "\n")
	case 8:
		insert("\x00\x00\n")
	case 9:
		insert(bulk(segment.MaxLost-3*1000) + strings.Repeat("{}\n", 1010)) // few of them pass the bound
	case 10: // the same record, spelled otherwise
		lines[i] = bytes.Replace(lines[i], []byte(`"type":"c`), []byte(`"type":"\u0063`), 1)
	case 11:
		lines[i] = bytes.Replace(lines[i], []byte(`"id"`), []byte(`"Id"`), 1)
	case 12:
		lines[i] = bytes.Replace(lines[i], []byte(`"v":1`), []byte(`"v":2`), 1)
	case 13:
		delete(files, name)
		return name + " is gone"
	case 14:
		other := names[r.IntN(len(names))]
		files[name], files[other] = files[other], files[name]
		return name + " and " + other + " are exchanged"
	case 15:
		files[name+segment.Packed] = packed(t, text)
		delete(files, name)
		return name + " is packed"
	case 16:
		whole := packed(t, text)
		files[name+segment.Packed] = whole[:r.IntN(len(whole))]
		delete(files, name)
		return name + " is packed and cut off"
	case 17:
		first := fmt.Sprintf("%020d", 1+r.IntN(2000))
		files[planted(first)] = bytes.Join([][]byte{opening(uint64(1+r.IntN(2000)), quoted(names[:1])), lines[i]}, nil)
		return "planted " + first
	}
	files[name] = bytes.Join(lines, nil)
	return fmt.Sprintf("%s: %d at line %d", name, kind, i+1)
}

// bulk is text of so many bytes in few lines, none of which is a record.
func bulk(size int) string {
	long := strings.Repeat("x", audit.MaxRecord/2-1) + "\n"
	whole, rest := size/len(long), size%len(long)
	text := strings.Repeat(long, whole)
	if rest > 0 {
		text += strings.Repeat("x", rest-1) + "\n"
	}
	return text
}

// Reading on several processors tells what reading one line after the other tells: the same records, faults, gaps and verdicts in the same order.
func TestReadingAheadTellsTheSame(t *testing.T) {
	files, keys := longLog(t, 1500, 256<<10) // several segments of several batches
	count := 32
	if testing.Short() {
		count = 8
	}
	if got := strings.Count(string(bytes.Join(slices.Collect(maps.Values(files)), nil)), `"ConnectionClosed"`); got < 2*256 {
		t.Fatalf("the log has only %d records of connections: they are not read in several batches", got)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for n := range count {
		spoiled := maps.Clone(files)
		var what []string
		for range min(n, 1+r.IntN(3)) { // the first log is intact
			what = append(what, spoil(t, r, spoiled))
		}
		dir := put(t, spoiled)
		most := -1
		if n%4 == 3 {
			most = r.IntN(1000)
		}
		for how, open := range map[string]func() (*query.Source, error){
			"read": func() (*query.Source, error) { return query.Open([]string{dir}, nil) },
			"verified": func() (*query.Source, error) {
				return query.OpenVerified(t.Context(), []string{dir}, nil, evidence.VerifyOptions{Keys: keys})
			},
		} {
			if one, ahead := transcript(t, 1, most, open), transcript(t, 3, most, open); one != ahead {
				diff := cmp.Diff(strings.Split(one, "\n"), strings.Split(ahead, "\n"))
				t.Errorf("%s, %s: one after the other (-) and ahead (+) differ:\n%s", strings.Join(what, "; "), how, diff)
			}
		}
	}
}

// BenchmarkRecords reads a log of one segment: on all processors, on one, and, to compare with, only searches its bytes for a text that is not there.
func BenchmarkRecords(b *testing.B) {
	files, _ := longLog(b, 30_000, 64<<20)
	dir := put(b, files)
	bytesOf := 0
	for name, text := range files {
		if _, ok := segment.ParseName(name); ok {
			bytesOf += len(text)
		}
	}
	for name, processors := range map[string]int{"all-processors": runtime.GOMAXPROCS(0), "one-processor": 1} {
		b.Run(name, func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			b.SetBytes(int64(bytesOf))
			for b.Loop() {
				s, err := query.Open([]string{dir}, nil)
				if err != nil {
					b.Fatal(err)
				}
				for _, err := range s.Records() {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
	b.Run("bytes-contains", func(b *testing.B) {
		b.SetBytes(int64(bytesOf))
		for b.Loop() {
			for name := range files {
				text, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					b.Fatal(err)
				}
				if bytes.Contains(text, []byte(`"id":"not there"`)) {
					b.Fatal("the text is there")
				}
			}
		}
	})
}
