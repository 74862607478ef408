package auditcmd

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// spoiled is a log whose only segment, packed, cannot be unpacked from somewhere on.
func spoiled(t *testing.T, from func(packed []byte) int) (dir, keys, outside string) {
	t.Helper()
	dir, keys, outside = keptLog(t)
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
	return dir, keys, outside
}

func TestAReadingThatFailsAnswersNothing(t *testing.T) {
	dir, _, _ := keptLog(t)
	text, err := os.ReadFile(onlySegment(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	failing := func(t *testing.T, records int, args []string) result {
		var out, errOut strings.Builder
		in := io.MultiReader(strings.NewReader(strings.Join(strings.SplitAfter(string(text), "\n")[:records], "")), iotest.ErrReader(errors.New("the disk fails")))
		code := runCommand(t.Context(), append([]string{"audit"}, args...), in, &out, &errOut)
		return result{Code: code, Out: out.String(), ErrOut: errOut.String()}
	}
	for name, args := range readers("-") {
		if got := failing(t, 0, args); got.Code != cli.ExitBadInput || got.Out != "" || !strings.Contains(got.ErrOut, "the disk fails") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, args := range [][]string{{"search", "-", "--count"}, {"tail", "-"}, {"stats", "-"}, {"stats", "-", "-o", "json"}, {"check", "-"}, {"report", "-", "-o", "-"}} {
		if got := failing(t, 3, args); got.Code != cli.ExitBadInput || got.Out != "" {
			t.Errorf("%q, after three records: %+v", args, got)
		}
	}
	if got := failing(t, 3, []string{"search", "-", "-o", "jsonl"}); got.Code != cli.ExitBadInput || strings.Count(got.Out, "\n") != 3 {
		t.Errorf("the records before: %+v", got)
	}
}

// Where a packed segment is damaged is a place of the log like a line that is no record: what stands before it and in other segments is read.
func TestADamagedPackedSegmentHidesNothingElse(t *testing.T) {
	const header = 10 // of gzip
	oneMore := func(content string) func(t *testing.T) (dir, keys, outside string) {
		return func(t *testing.T) (dir, keys, outside string) {
			dir, keys, outside = keptLog(t)
			if err := os.WriteFile(filepath.Join(dir, segment.Name(6)+".gz"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			return dir, keys, outside
		}
	}
	for name, c := range map[string]struct {
		made  func(t *testing.T) (dir, keys, outside string)
		shown string // requests
	}{
		"one more, of a byte": {oneMore("x"), "4\n"},
		"one more, empty":     {oneMore(""), "4\n"},
		"from the first byte on": {func(t *testing.T) (dir, keys, outside string) {
			return spoiled(t, func([]byte) int { return header })
		}, "0\n"},
		"behind three records": {func(t *testing.T) (dir, keys, outside string) {
			return spoiled(t, func(packed []byte) int { return bytes.Index(packed, []byte("\x00\x00\xff\xff")) + 4 })
		}, "2\n"},
	} {
		dir, keys, outside := c.made(t)
		count := []string{"search", dir, "--type", "request", "--count"}
		if got := evidenceCommand(t, count...); got.Code != cli.ExitIncomplete || got.Out != c.shown || !strings.Contains(got.ErrOut, "not packed by gzip") {
			t.Errorf("%s, without keys: %+v", name, got)
		}
		given := []string{"--keys", keys, "--checkpoint", outside}
		if got := evidenceCommand(t, append(count, given...)...); got.Code != cli.ExitNo || got.Out != c.shown {
			t.Errorf("%s: %+v", name, got)
		}
		for command, args := range readers(dir) {
			got := evidenceCommand(t, append(args, given...)...)
			if got.Code != cli.ExitNo || !strings.HasPrefix(got.ErrOut, "not verified: the log was changed: ") || !strings.Contains(got.ErrOut, "not packed by gzip") ||
				!strings.Contains(got.ErrOut, "the log was changed") || strings.Contains(got.ErrOut, "exit code") {
				t.Errorf("%s, %s: exit code %d, %q", name, command, got.Code, got.ErrOut)
			}
			if command == "report" && !strings.Contains(got.Out, "not packed by gzip") {
				t.Errorf("%s: the report does not say it", name)
			}
		}
	}
}

// The only segment of a log, with something before its first record.
func TestRecordsBehindAStrangeFirstLineAreNotSaidToBeGone(t *testing.T) {
	dir, keys, outside := keptLog(t)
	file := onlySegment(t, dir)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(bytes.Repeat([]byte("A"), 9000), append([]byte("\n"), text...)...), 0o600); err != nil {
		t.Fatal(err)
	}
	given := []string{"--keys", keys, "--checkpoint", outside}
	if got := evidenceCommand(t, append([]string{"verify", dir}, given...)...); got.Code != cli.ExitNo || !strings.Contains(got.Out, filepath.Base(file)+": no record in it counts") || strings.Contains(got.Out, "are gone") {
		t.Errorf("verify: %+v", got)
	}
	if got := evidenceCommand(t, append([]string{"search", dir, "--type", "request", "--count"}, given...)...); got.Code != cli.ExitNo || got.Out != "4\n" {
		t.Errorf("search: %+v", got)
	}
	if got := evidenceCommand(t, "search", dir, "--count"); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, filepath.Base(file)+": no record in it counts") {
		t.Errorf("search without keys: %+v", got)
	}
}

// both keeps what was written to either stream, in order.
type both struct{ all *[]string }

func (f both) Write(p []byte) (int, error) {
	*f.all = append(*f.all, string(p))
	return len(p), nil
}

func TestAChangedLogIsReportedBeforeItsRecordsAreShown(t *testing.T) {
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
		code := runCommand(t.Context(), append(append([]string{"audit"}, args...), "--keys", keys, "--checkpoint", outside), strings.NewReader(""), both{&said}, both{&said})
		if code != cli.ExitNo || len(said) == 0 || !strings.HasPrefix(said[0], "not verified: the log was changed: ") || strings.Count(strings.Join(said, ""), "not verified") != 1 {
			t.Errorf("%s: exit code %d, %.300q", name, code, said)
		}
	}
}
