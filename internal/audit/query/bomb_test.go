package query_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/query"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// bomb is a packed file of many times the same line, behind a head.
func bomb(t *testing.T, dir, name, head, line string, size int) {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, head); err != nil {
		t.Fatal(err)
	}
	chunk := []byte(strings.Repeat(line, 1+(1<<20)/len(line)))
	for n := 0; n < size; n += len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A line that is no record of its segment costs a reader work, and a packed file can hold any number of them.
func TestAPackedSegmentOfLinesThatAreNotInTheirPlaceIsReadNoFurtherThanACrashCanSpoil(t *testing.T) {
	k := keptLog(t)
	head := bulk(segment.MaxLost - audit.MaxRecord/2) // the most of what a crash can spoil is read in few lines
	for name, line := range map[string]string{"newlines": "\n", "objects": "{}\n", "one record again and again": string(opening(1, ""))} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "objects" {
				t.Skip("short: of lines one kind is enough")
			}
			for _, isVerified := range []bool{true, false} {
				dir := put(t, k.files)
				bomb(t, dir, planted("00000000000000000001")+".gz", head, line, 8*segment.MaxLost)
				s, err := query.Open([]string{dir}, nil)
				if isVerified {
					s, err = query.OpenVerified(t.Context(), []string{dir}, nil, evidence.VerifyOptions{Keys: k.keys})
				}
				if err != nil {
					t.Fatal(err)
				}
				lines, genuine, last := 0, map[string]bool{}, error(nil)
				for r, err := range s.Records() {
					switch {
					case err == nil && bytes.Equal(append(bytes.Clone(r.Raw), '\n'), []byte(line)):
						lines++
					case err == nil:
						genuine[string(r.Raw)] = true
					case errors.As(err, new(*query.BadLine)):
						lines, last = lines+1, err
					default:
						t.Fatal(err)
					}
				}
				if most := strings.Count(head, "\n") + (segment.MaxLost-len(head))/len(line) + 3; lines > most {
					t.Errorf("verified %v: %d lines of it were read, of which %d are enough", isVerified, lines, most)
				}
				if last == nil || !strings.Contains(last.Error(), "is not read") {
					t.Errorf("verified %v: the last bad line is %v", isVerified, last)
				}
				if len(genuine) < len(k.lines) {
					t.Errorf("verified %v: %d of %d genuine records are shown", isVerified, len(genuine), len(k.lines))
				}
			}
		})
	}
}

// Nor are such lines counted for the sake of the last ones.
func TestTheLastLinesOfAPackedSegmentCostNoMoreThanAllOfIt(t *testing.T) {
	dir, head := t.TempDir(), string(opening(1, ""))+bulk(segment.MaxLost-audit.MaxRecord/2)
	bomb(t, dir, planted("00000000000000000001")+".gz", head, "\n", 8*segment.MaxLost)
	s, err := query.Open([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.LastLines(10)
	last := error(nil)
	for _, err := range s.Records() {
		if err != nil {
			last = err
		}
	}
	bad, ok := errors.AsType[*query.BadLine](last)
	if !ok || !bad.IsGap || bad.Line > strings.Count(head, "\n")+audit.MaxRecord/2+10 {
		t.Errorf("it is read up to %v", last)
	}
}
