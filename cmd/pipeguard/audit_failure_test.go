package main

import (
	"bytes"
	"compress/gzip"
	"maps"
	"os"
	"strings"
	"testing"
)

// spoiled is a log whose only segment, packed, cannot be unpacked from somewhere on.
func spoiled(t *testing.T, from func(packed []byte) int) string {
	t.Helper()
	dir, _, _ := keptLog(t)
	file := onlySegment(t, dir)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	for half := range bytes.SplitSeq(text, []byte(`"seq":4`)) { // a block each
		if _, err := w.Write(half); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	packed := out.Bytes()
	packed[from(packed)] ^= 0xff
	if err := os.WriteFile(file+".gz", packed, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAReadingThatFailsAnswersNothing(t *testing.T) {
	const header = 10 // of gzip
	atOnce := spoiled(t, func([]byte) int { return header })
	later := spoiled(t, func(packed []byte) int { return bytes.Index(packed, []byte("\x00\x00\xff\xff")) + 4 })
	for name, args := range readers(atOnce) {
		if got := evidenceCommand(t, args...); got.code != exitBadInput || got.out != "" || !strings.Contains(got.errOut, "gzip") && !strings.Contains(got.errOut, "flate") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, args := range [][]string{{"search", later, "--count"}, {"tail", later}, {"stats", later}, {"stats", later, "-o", "json"}, {"check", later}, {"report", later, "-o", "-"}} {
		if got := evidenceCommand(t, args...); got.code != exitBadInput || got.out != "" {
			t.Errorf("%q, after three records: %+v", args, got)
		}
	}
	if got := evidenceCommand(t, "search", later, "-o", "jsonl"); got.code != exitBadInput || strings.Count(got.out, "\n") != 3 {
		t.Errorf("the records before: %+v", got)
	}
}

// both keeps what was written to either stream, in order.
type both struct{ all *[]string }

func (f both) Write(p []byte) (int, error) {
	*f.all = append(*f.all, string(p))
	return len(p), nil
}

func TestThatALogWasChangedIsSaidBeforeAnythingOfIt(t *testing.T) {
	dir, keys, outside := keptLog(t)
	file := onlySegment(t, dir)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte("12:00:00Z"), []byte("13:00:00Z"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	all := readers(dir)
	maps.Copy(all, map[string][]string{
		"wide": {"search", dir, "-o", "wide"}, "jsonl": {"search", dir, "-o", "jsonl"}, "count": {"search", dir, "--count"}, "stats in JSON": {"stats", dir, "-o", "json"}, "check in JSON": {"check", dir, "-o", "json"},
		"one in JSON": {"show", dir, "3", "-o", "json"}, "ecs": {"export", dir, "--format", "ecs"}, "ocsf": {"export", dir, "--format", "ocsf"}, "hunt in JSON": {"hunt", dir, "-o", "json"},
	})
	for name, args := range all {
		var said []string
		code := run(t.Context(), append(append([]string{"audit"}, args...), "--keys", keys, "--checkpoint", outside), streams{strings.NewReader(""), both{&said}, both{&said}})
		if code != exitNo || len(said) == 0 || !strings.HasPrefix(said[0], "not verified: the log was changed: ") || strings.Count(strings.Join(said, ""), "not verified") != 1 {
			t.Errorf("%s: exit code %d, %.300q", name, code, said)
		}
	}
}
