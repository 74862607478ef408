package main

import (
	"bytes"
	"compress/gzip"
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
