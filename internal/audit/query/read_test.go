package query

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// noPrev is a hash that fits nothing.
var noPrev = strings.Repeat("A", 43) + "="

// line is a record of a log with hashes.
func line(seq int) string {
	return fmt.Sprintf(`{"v":1,"seq":%d,"type":"request","stage":"ResponseComplete","time":"2026-03-01T12:00:00Z","session":"s","id":"r%d","prev":"%s"}`, seq, seq, noPrev)
}

// seen is what a reader makes of a log: numbers of records, and faults by line.
func seen(t *testing.T, name string, r io.Reader) (all []string) {
	t.Helper()
	for record, err := range newLines(name, r).all(nil) {
		bad := new(*BadLine)
		switch {
		case errors.As(err, bad):
			all = append(all, fmt.Sprintf("line %d is bad", (*bad).Line))
		case err != nil:
			all = append(all, err.Error())
		default:
			all = append(all, fmt.Sprint(record.Seq))
		}
	}
	return all
}

func TestLinesThatAreNoRecordsAreNamedAndReadOver(t *testing.T) {
	long := strings.Repeat("x", audit.MaxRecord)
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"records":                       {line(1) + "\n" + line(2) + "\n", []string{"1", "2"}},
		"nothing":                       {"", nil},
		"text":                          {"hello\n" + line(1) + "\n", []string{"line 1 is bad", "1"}},
		"an empty line":                 {"\n" + line(1) + "\n", []string{"line 1 is bad", "1"}},
		"a torn end":                    {line(1) + "\n" + line(2), []string{"1", "line 2 is bad"}},
		"a line that is too long":       {long + long + "\n" + line(1) + "\n", []string{"line 1 is bad", "1"}},
		"a line of just too many bytes": {long + "\n" + line(1) + "\n", []string{"line 1 is bad", "1"}},
		"a long line without end":       {line(1) + "\n" + long + long, []string{"1", "line 2 is bad"}},
		"an unknown field":              {strings.Replace(line(1), `"prev"`, `"perv"`, 1) + "\n", []string{"line 1 is bad"}},
		"a record of another version":   {strings.Replace(line(1), `"v":1`, `"v":2`, 1) + "\n", []string{"line 1 is bad"}},
		"two records in one line":       {line(1) + line(2) + "\n", []string{"line 1 is bad"}},
		"no number":                     {strings.Replace(line(1), `"seq":1`, `"seq":0`, 1) + "\n", []string{"line 1 is bad"}},
		"a negative number":             {strings.Replace(line(1), `"seq":1`, `"seq":-1`, 1) + "\n", []string{"line 1 is bad"}},
		"no session":                    {strings.Replace(line(1), `"session":"s"`, `"session":""`, 1) + "\n", []string{"line 1 is bad"}},
		"an array":                      {"[" + line(1) + "]\n", []string{"line 1 is bad"}},
		"null":                          {"null\n", []string{"line 1 is bad"}},
		"bytes that are no text":        {"\xff\xfe\x00\n" + line(1) + "\n", []string{"line 1 is bad", "1"}},
		"a raw newline within a string": {`{"v":1,"seq":1,"id":"a` + "\n" + `b"}` + "\n", []string{"line 1 is bad", "line 2 is bad"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, seen(t, "x", strings.NewReader(c.in))); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.want, seen(t, "x", iotest.OneByteReader(strings.NewReader(c.in)))); diff != "" {
				t.Errorf("byte by byte: %s", diff)
			}
		})
	}
}

func TestABadLineSaysWhatIsWrongWithIt(t *testing.T) {
	for name, c := range map[string]struct {
		in, want string
		is       error
	}{
		"text":                      {"hello", "not a record", nil},
		"null":                      {"null", "unknown record version 0", audit.ErrVersion},
		"an unknown field":          {strings.Replace(line(1), `"v":1`, `"v":1,"extra":2`, 1), `unknown field "extra"`, nil},
		"a later version":           {strings.Replace(line(1), `"v":1`, `"v":2`, 1), "unknown record version 2", audit.ErrVersion},
		"no number":                 {strings.Replace(line(1), `"seq":1`, `"seq":0`, 1), "no session or number", nil},
		"a line that is too long":   {strings.Repeat("x", audit.MaxRecord), "longer than 8192 bytes", audit.ErrTooLong},
		"one that is far too long":  {strings.Repeat("x", 10*audit.MaxRecord), "longer than 8192 bytes", audit.ErrTooLong},
		"a record that is too long": {strings.Replace(line(1), `"id":"`, `"id":"`+strings.Repeat("x", audit.MaxRecord), 1), "longer than", audit.ErrTooLong},
	} {
		var bad *BadLine
		for _, err := range newLines("x", strings.NewReader(line(1)+"\n"+c.in+"\n"+line(3)+"\n")).all(nil) {
			errors.As(err, &bad)
		}
		if bad == nil || !strings.Contains(bad.Error(), c.want) || c.is != nil && !errors.Is(bad, c.is) || bad.Line != 2 || bad.Bytes != len(c.in) || bad.Torn {
			t.Errorf("%s: %+v", name, bad)
		}
	}
}

func TestARecordIsTheLineThatItStandsIn(t *testing.T) {
	for r, err := range newLines("x", iotest.HalfReader(strings.NewReader(line(1)+"\n"+line(2)+"\n"))).all(nil) {
		if err != nil || string(r.Raw) != line(r.Line) || r.Prev != noPrev || r.File != "x" {
			t.Errorf("%q line %d, prev %q, %v", r.Raw, r.Line, r.Prev, err)
		}
	}
}

func TestAFaultOfTheDiskEndsReading(t *testing.T) {
	in := io.MultiReader(strings.NewReader(line(1)+"\n"+line(2)), iotest.ErrReader(errors.New("disk on fire")))
	if diff := cmp.Diff([]string{"1", "read x, line 2: disk on fire"}, seen(t, "x", in)); diff != "" {
		t.Error(diff)
	}
}

func write(t *testing.T, name string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func segmentName(first int) string {
	return fmt.Sprintf("audit-%020d-0b7e6a52-7c1d-4a59-9d62-3f6f6f0f7e10.jsonl", first)
}

func TestADirectoryIsItsSegmentsInOrder(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, segmentName(100)), line(100))
	write(t, filepath.Join(dir, segmentName(3)), line(3), line(4))
	write(t, filepath.Join(dir, segmentName(1)), line(1), line(2))
	for _, other := range []string{"checkpoints", "audit-1.jsonl", "notes.jsonl", segmentName(7) + ".bak"} {
		write(t, filepath.Join(dir, other), "no record")
	}
	s, err := Open([]string{dir, "-"}, strings.NewReader(line(101)+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for r, err := range s.Records() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Seq)
	}
	if diff := cmp.Diff([]uint64{1, 2, 3, 4, 100, 101}, got); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyATornEndThatTheNextSegmentAccountsForIsLeftOut(t *testing.T) {
	whole := line(1) + "\n" + line(2) + "\n"
	again := line(3) + "\n" + `{"v":1,"torn`
	for name, c := range map[string]struct{ log, want string }{
		"accounted for":          {fmt.Sprintf(`{"previous_segment":%q,"previous_bytes":%d,"torn_bytes":%d}`, segmentName(1), len(whole), len(again)), "1 2 3 4"},
		"less than was there":    {fmt.Sprintf(`{"previous_segment":%q,"previous_bytes":%d,"torn_bytes":%d}`, segmentName(1), len(whole), len(again)+512), "1 2 3 4"},
		"another segment":        {fmt.Sprintf(`{"previous_segment":%q,"previous_bytes":%d,"torn_bytes":%d}`, segmentName(2), len(whole), len(again)), "1 2 3 bad 3 4"},
		"fewer bytes":            {fmt.Sprintf(`{"previous_segment":%q,"previous_bytes":%d,"torn_bytes":%d}`, segmentName(1), len(whole), len(again)-1), "1 2 3 bad 3 4"},
		"records that were read": {fmt.Sprintf(`{"previous_segment":%q,"previous_bytes":%d,"torn_bytes":%d}`, segmentName(1), 0, len(again)), "1 2 3 bad 3 4"},
		"less than nothing":      {fmt.Sprintf(`{"previous_segment":%q,"previous_bytes":%d,"torn_bytes":%d}`, segmentName(1), -1, len(whole)+len(again)+1), "1 2 3 bad bad 4"},
		"nothing":                {"{}", "1 2 3 bad 3 4"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, segmentName(1)), []byte(whole+again), 0o600); err != nil {
			t.Fatal(err)
		}
		first := strings.Replace(strings.Replace(line(3), `"request","stage":"ResponseComplete"`, `"log","stage":"LogOpen"`, 1), `"prev"`, `"log":`+c.log+`,"prev"`, 1)
		write(t, filepath.Join(dir, segmentName(3)), first, line(4))
		s, err := Open([]string{dir}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for r, err := range s.Records() {
			if err != nil {
				got = append(got, "bad")
				continue
			}
			got = append(got, fmt.Sprint(r.Seq))
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestOnlyWhatAnotherSegmentDeclaresVoidIsLeftOut(t *testing.T) {
	names := map[string]string{}
	for _, id := range []string{"0a", "0b", "0c"} {
		names[id] = strings.Replace(segmentName(3), "-0b7", "-"+id+"7", 1)
	}
	opening := func(seq int, void ...string) string {
		declared := fmt.Sprintf(`"log":{"void":["%s"]},"prev"`, strings.Join(void, `","`))
		return strings.Replace(strings.Replace(line(seq), `"request","stage":"ResponseComplete"`, `"log","stage":"LogOpen"`, 1), `"prev"`, declared, 1)
	}
	for name, c := range map[string]struct {
		void []string
		want string
	}{
		"those beside it":     {[]string{names["0a"], names["0c"]}, "1 2 3 4 5 6"},
		"one of them":         {[]string{names["0c"]}, "1 2 bad 3 4 5 6"},
		"itself":              {[]string{names["0b"], names["0a"], names["0c"]}, "1 2 3 4 5 6"},
		"another file":        {[]string{"../" + names["0a"], "x"}, "1 2 bad 3 4 9 5 6"},
		"nothing":             {nil, "1 2 bad 3 4 9 5 6"},
		"records of the past": {[]string{segmentName(1), names["0a"], names["0c"]}, "1 2 3 4 5 6"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, segmentName(1)), line(1), line(2))
		write(t, filepath.Join(dir, names["0a"]), "no record")
		write(t, filepath.Join(dir, names["0b"]), opening(3, c.void...), line(4))
		write(t, filepath.Join(dir, names["0c"]), line(9))
		write(t, filepath.Join(dir, segmentName(5)), line(5), line(6))
		s, err := Open([]string{dir}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for r, err := range s.Records() {
			if err != nil {
				got = append(got, "bad")
				continue
			}
			got = append(got, fmt.Sprint(r.Seq))
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		followed := strings.Replace(c.want, " 9", " bad 9", 1) + " end" // while it is followed, one that begins as another does is told
		if diff := cmp.Diff(followed, strings.Join(follow(t, dir, func() {}), " ")); diff != "" {
			t.Errorf("%s, followed: %s", name, diff)
		}
	}
}

func TestWhatIsNoLogIsRefused(t *testing.T) {
	for name, names := range map[string][]string{
		"nothing":                     nil,
		"a file that is not there":    {"missing.jsonl"},
		"a directory without records": {t.TempDir()},
		"standard input twice":        {"-", "-"},
	} {
		if _, err := Open(names, nil); err == nil {
			t.Errorf("%s: taken for a log", name)
		}
	}
}

// endless makes records until it has written so many bytes.
type endless struct {
	left int
	line []byte
	at   int
}

func (e *endless) Read(p []byte) (n int, err error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	for n < len(p) {
		c := copy(p[n:], e.line[e.at:])
		n, e.at = n+c, (e.at+c)%len(e.line)
	}
	e.left -= n
	return n, nil
}

func TestMemoryIsBoundedOnALongLog(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 100 MB")
	}
	text := []byte(strings.Replace(line(7), `"prev"`, `"what":{"params":{"x":"`+strings.Repeat("y", 6000)+`"}},"prev"`, 1) + "\n")
	in := &endless{left: 40 << 20, line: text}
	tally, err := NewTally([]string{"id", "minute"})
	if err != nil {
		t.Fatal(err)
	}
	var f Filter
	if err := f.Parse("rule!=x path!=C:\\a", noon); err != nil {
		t.Fatal(err)
	}
	ring, most, count := NewRing(100), uint64(0), 0
	for r, err := range newLines("x", in).all(nil) {
		if bad := new(*BadLine); errors.As(err, bad) { // the last one is cut off
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if f.Match(&r.Event) {
			tally.Add(&r.Event)
			ring.Add(r)
		}
		if count++; count%4000 == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}
	if count < 6_000 || most > 16<<20 {
		t.Errorf("%d records, %d bytes of memory at most; want 16 MB or less", count, most)
	}
}

func TestGroupsAreBounded(t *testing.T) {
	tally, err := NewTally([]string{"method"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range MaxGroups + 500 {
		tally.Add(&audit.Event{What: &audit.What{FullMethod: fmt.Sprint(i)}})
	}
	if len(tally.Groups()) != MaxGroups || tally.Rest.Records != 500 {
		t.Errorf("%d groups, %d others", len(tally.Groups()), tally.Rest.Records)
	}
}

func TestNothingToCountByIsRefused(t *testing.T) {
	for _, keys := range [][]string{nil, {""}, {"path"}, {"since"}, {"caller", "frobnicate"}, {"Caller"}} {
		if _, err := NewTally(keys); err == nil {
			t.Errorf("%q is taken", keys)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(line(1) + "\n" + line(2)))
	f.Add([]byte("{}\n\n\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		count := 0
		for r, err := range newLines("x", bytes.NewReader(in)).all(nil) {
			if count++; err == nil && (r.Seq == 0 || r.Session == "" || !bytes.Contains(in, r.Raw)) {
				t.Errorf("%q is a record", r.Raw)
			}
		}
		if lines := bytes.Count(in, []byte("\n")); count < lines || count > lines+1 {
			t.Errorf("%d lines were read as %d", lines, count)
		}
	})
}

// A newline every now and then makes no records of a hole.
func TestAHoleWithNewlinesInItIsNotReadToItsEnd(t *testing.T) {
	read := 0
	in := io.MultiReader(strings.NewReader(line(1)+"\n"), pitted{&read})
	var last error
	for _, err := range newLines("x", in).all(nil) {
		last = err
	}
	if bad := new(BadLine); !errors.As(last, &bad) || !errors.Is(last, errHole) || read > 4*segment.MaxLost {
		t.Errorf("%d bytes of the hole were read: %v", read, last)
	}
}

// pitted is a hole with a newline in each mebibyte.
type pitted struct{ read *int }

func (e pitted) Read(p []byte) (int, error) {
	clear(p)
	if at := 1<<20 - *e.read%(1<<20) - 1; at < len(p) {
		p[at] = '\n'
	}
	*e.read += len(p)
	return len(p), nil
}
