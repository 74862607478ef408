package query

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func appendTo(t *testing.T, name, text string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// follow notes what Follow says; at each end of the log it takes the next step, and stops after the last.
func follow(t *testing.T, name string, steps ...func()) (all []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for r, err := range Follow(ctx, name, time.Second) {
			bad := new(*BadLine)
			switch {
			case errors.Is(err, ErrEnd) && len(steps) == 0:
				stop()
			case errors.Is(err, ErrEnd):
				all = append(all, "end")
				steps[0]()
				steps = steps[1:]
			case errors.As(err, bad):
				all = append(all, "bad")
			case err != nil:
				all = append(all, "error")
			default:
				all = append(all, fmt.Sprint(r.Seq))
			}
		}
	})
	return all
}

func TestAFileIsFollowedAlsoWithinALine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit.jsonl")
	write(t, name, line(1))
	second := line(2) + "\n"
	got := follow(t, name,
		func() { appendTo(t, name, second[:20]) },
		func() { appendTo(t, name, second[20:]) },
		func() { appendTo(t, name, "no record\n"+line(3)+"\n") },
	)
	if diff := cmp.Diff("1 end end 2 end bad 3", strings.Join(got, " ")); diff != "" {
		t.Error(diff)
	}
}

// Of a log that is followed, missing numbers show as they do when it is read once.
func TestWhatIsFollowedSaysWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, segmentName(1)), line(1), line(2))
	write(t, filepath.Join(dir, segmentName(6)), line(6), line(7))
	missing := func(records func(func(Record, error) bool)) (all []string) {
		for r, err := range records {
			if err != nil {
				break // the end, for now
			}
			all = append(all, fmt.Sprintf("%d:%d", r.Seq, r.Missing))
		}
		return all
	}
	source, err := Open([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]string{"once": missing(source.Records()), "followed": missing(Follow(t.Context(), dir, time.Second))} {
		if diff := cmp.Diff("1:0 2:0 6:3 7:0", strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestADirectoryIsFollowedIntoTheNextSegment(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, segmentName(1)), filepath.Join(dir, segmentName(3))
	got := follow(t, dir,
		func() { write(t, first, line(1)) },
		func() { appendTo(t, first, line(2)+"\n"+`{"v":1,"torn`); write(t, second, line(3)) },
		func() { appendTo(t, second, line(4)+"\n") },
	)
	if diff := cmp.Diff("end 1 end 2 bad 3 end 4", strings.Join(got, " ")); diff != "" {
		t.Error(diff)
	}
}

// A file that somebody puts beside the log takes nobody's eyes off it: neither one with a number ahead, nor one that goes on from the same record, nor many of them, nor one
// that says where the log's segment ends.
func TestAPlantedSegmentHidesNothingOfTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(dir string)
		want  string
	}{
		"a number ahead":  {func(dir string) { write(t, filepath.Join(dir, segmentName(1_000_000_000)), line(1_000_000_000)) }, "1 2 end 1000000000 end bad 3 4 end 5 end 6 7 end 8"},
		"the next number": {func(dir string) { write(t, filepath.Join(dir, segmentName(3)), line(3), line(4)) }, "1 2 end 3 4 end bad 3 4 end 5 end 6 7 end 8"},
		"many": {func(dir string) {
			for i := range 200 {
				write(t, filepath.Join(dir, segmentName(100+i)), line(100+i))
			}
		}, ""},
		"one that ends the segment": {func(dir string) {
			log := fmt.Sprintf(`"log":{"previous_segment":%q,"previous_bytes":%d,"torn_bytes":0},"prev"`, segmentName(1), len(line(1))+1)
			write(t, filepath.Join(dir, segmentName(2)), strings.Replace(strings.Replace(line(2), `"request","stage":"ResponseComplete"`, `"log","stage":"LogOpen"`, 1), `"prev"`, log, 1))
		}, "1 2 end bad 2 end bad 3 4 end 5 end 6 7 end 8"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			genuine, next := filepath.Join(dir, segmentName(1)), filepath.Join(dir, segmentName(6))
			write(t, genuine, line(1), line(2))
			got := strings.Join(follow(t, dir,
				func() { c.plant(dir) },
				func() { appendTo(t, genuine, line(3)+"\n"+line(4)+"\n") },
				func() { appendTo(t, genuine, line(5)+"\n") },
				func() { write(t, next, line(6), line(7)) },
				func() { appendTo(t, next, line(8)+"\n") },
			), " ")
			if c.want == "" {
				if !strings.HasSuffix(got, "end 6 7 end 8") {
					t.Error(got)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A segment that is packed while its log is followed holds what was shown.
func TestASegmentThatIsPackedIsNotShownAgain(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, segmentName(1)), filepath.Join(dir, segmentName(3))
	write(t, first, line(1), line(2))
	got := follow(t, dir,
		func() { write(t, second, line(3)) },
		func() { packFile(t, first) },
		func() { appendTo(t, second, line(4)+"\n") },
	)
	if diff := cmp.Diff("1 2 end 3 end end 4", strings.Join(got, " ")); diff != "" {
		t.Error(diff)
	}
}

// packFile leaves a packed copy in place of a file.
func packFile(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), os.WriteFile(name+".gz", packed.Bytes(), 0o600), os.Remove(name)); err != nil {
		t.Fatal(err)
	}
}

func TestATornEndThatTheNextSegmentDeclaresIsNoBadLine(t *testing.T) {
	dir := t.TempDir()
	whole, torn := line(1)+"\n"+line(2)+"\n", `{"v":1,"torn`
	log := fmt.Sprintf(`"log":{"previous_segment":%q,"previous_bytes":%d,"torn_bytes":%d},"prev"`, segmentName(1), len(whole), len(torn))
	next := strings.Replace(strings.Replace(line(3), `"request","stage":"ResponseComplete"`, `"log","stage":"LogOpen"`, 1), `"prev"`, log, 1)
	first, second := filepath.Join(dir, segmentName(1)), filepath.Join(dir, segmentName(3))
	got := follow(t, dir,
		func() { appendTo(t, first, whole+torn) },
		func() { write(t, second, next) },
	)
	if diff := cmp.Diff("end 1 2 end 3", strings.Join(got, " ")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("1 2 3 end", strings.Join(follow(t, dir, func() {}), " ")); diff != "" { // both are there from the start
		t.Error(diff)
	}
}

func TestAFileThatBecomesShorterIsAnError(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit.jsonl")
	write(t, name, line(1), line(2))
	got := follow(t, name, func() { write(t, name, line(1)) })
	if diff := cmp.Diff("1 2 end error", strings.Join(got, " ")); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNotThereCannotBeFollowed(t *testing.T) {
	if got := follow(t, filepath.Join(t.TempDir(), "missing")); !cmp.Equal(got, []string{"error"}) {
		t.Errorf("got %q", got)
	}
}
