package auditcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// Records that follow a verified reading are told from those already shown by file and line: a forged tail has numbers that the log then uses again.
func TestNumbersOfAForgedTailHideNoRecordThatComes(t *testing.T) {
	errLine := errors.New("no record")
	at := func(file string, line int, seq uint64) query.Record {
		return query.Record{Event: audit.Event{Seq: seq}, File: file, Line: line}
	}
	records := func(list ...query.Record) iter.Seq2[query.Record, error] {
		return func(yield func(query.Record, error) bool) {
			for _, r := range list {
				if r.File == "" {
					if !yield(r, errLine) {
						return
					}
				} else if !yield(r, nil) {
					return
				}
			}
		}
	}
	before := []query.Record{at("a", 1, 1), at("a", 2, 2), at("forged", 1, 3), at("forged", 2, 4)}
	shown := map[string]int{}
	for range noting(records(before...), shown) { //nolint:revive // what was read is noted
	}
	var got []string
	for r, err := range beyond(records(append(before, at("", 0, 0), at("b", 1, 3), at("b", 2, 4), at("a", 3, 3))...), shown) {
		if err != nil {
			got = append(got, "bad")
			continue
		}
		got = append(got, fmt.Sprintf("%s:%d", r.File, r.Seq))
	}
	if want, all := "bad b:3 b:4 a:3", strings.Join(got, " "); all != want {
		t.Errorf("got %s, want %s", all, want)
	}
}

func TestUnsignedRecordsOfAnEndedProcessAreNamed(t *testing.T) {
	cmd := &cobra.Command{}
	var said strings.Builder
	cmd.SetErr(&said)
	opening := func(unsigned uint64) query.Record {
		r := query.Record{File: "a", Line: 1}
		r.Seq, r.Log = 9, &audit.Log{Unsigned: unsigned}
		return r
	}
	n := 0
	for _, err := range takenOver(cmd, func(yield func(query.Record, error) bool) {
		_ = yield(query.Record{}, nil) && yield(opening(0), nil) && yield(query.Record{}, errors.New("bad")) && yield(opening(3), nil)
	}) {
		if n++; (err != nil) != (n == 3) {
			t.Errorf("%d: %v", n, err)
		}
	}
	if got := said.String(); n != 4 || strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "record 9 signs 3 records before it as they were found") {
		t.Errorf("%d records, said %q", n, got)
	}
}

func TestLinesThatAreNoRecordsHideNoGap(t *testing.T) {
	in := reading{cmd: &cobra.Command{}}
	for i := range 5 * maxNamedLines {
		in.note(&query.BadLine{File: "a", LineError: audit.LineError{Line: i, Err: errors.New("no record")}})
	}
	in.note(missing(query.Record{File: "a", Line: 99, Event: audit.Event{Seq: 9}, Missing: 3}))
	if _, message := cli.Verdict(in.told(nil)); !strings.Contains(message, "records 6 to 8 are missing") || strings.Count(message, "no record") > maxNamedLines+1 {
		t.Errorf("said %q", message)
	}
}

// onText calls seen when a text was written.
type onText struct {
	bytes.Buffer
	text string
	seen func()
}

func (w *onText) Write(b []byte) (int, error) {
	n, err := w.Buffer.Write(b)
	if strings.Contains(w.String(), w.text) {
		w.seen()
	}
	return n, err
}

// A log that is followed has no end to wait for: a line that is no record is named at once, and only once.
func TestALineThatIsNoRecordIsNamedWhileTheLogIsFollowed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(file, []byte("\x1b[31mforged\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	errOut := &onText{text: "line 1: not a record", seen: stop}
	code := runCommand(ctx, []string{"audit", "tail", "-f", file, "-o", "jsonl"}, strings.NewReader(""), io.Discard, errOut)
	text := errOut.String()
	if code != cli.ExitIncomplete || strings.Count(text, "line 1: not a record") != 1 || !strings.Contains(text, "are missing: 1") || strings.Contains(text, "\x1b") {
		t.Errorf("exit code %d and:\n%s", code, text)
	}
}

// A directory is read from its end, which shows the same records as reading all of it.
func TestTheLastRecordsAreThoseOfTheWholeLog(t *testing.T) {
	dir, names := segmentsFor(t, 60)
	if len(names) <= fromEnd(0)[2].segments {
		t.Fatalf("%d segments", len(names))
	}
	for name, args := range map[string][]string{
		"all": nil, "a late one": {"--id", "55"}, "an early one": {"--id", "3"}, "some": {"--where", "stage=open"}, "none": {"--id", "99"},
	} {
		for _, n := range []int{0, 1, 5, 10, 40, 300} {
			tail := execute(t, "", append([]string{"audit", "tail", dir, "-o", "jsonl", "-n", strconv.Itoa(n)}, args...)...)
			search := execute(t, "", append([]string{"audit", "search", dir, "-o", "jsonl"}, args...)...)
			lines := strings.SplitAfter(search.Out, "\n")
			lines = lines[:len(lines)-1]
			if want := strings.Join(lines[max(0, len(lines)-n):], ""); tail.Out != want || tail.Code != cli.ExitYes {
				t.Errorf("%s, %d: exit code %d, %d bytes, want %d\n%s", name, n, tail.Code, len(tail.Out), len(want), tail.ErrOut)
			}
			if n > 0 && name == "none" && tail.ErrOut != search.ErrOut {
				t.Errorf("%d: says %s, want %s", n, tail.ErrOut, search.ErrOut)
			}
		}
	}
	const nobody = `no record of this log has id "99"`
	for n, want := range map[string]bool{"1": false, "2": true} {
		if got := execute(t, "", "audit", "tail", dir, "-n", n, "--id", "59", "--id", "99"); strings.Contains(got.ErrOut, nobody) != want {
			t.Errorf("of the last %s it says %s", n, got.ErrOut)
		}
	}
}

func TestOnlyTheEndOfALogIsReadForItsLastRecords(t *testing.T) {
	dir, names := segmentsFor(t, 60)
	text, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(names[0], append(text, "no record\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]int{"tail -n 5": cli.ExitYes, "tail -n 300": cli.ExitIncomplete, "tail -n 1 --id 3": cli.ExitIncomplete, "search": cli.ExitIncomplete} {
		if got := execute(t, "", append([]string{"audit"}, append(strings.Fields(args), dir)...)...); got.Code != want {
			t.Errorf("%s: exit code %d\n%s", args, got.Code, got.ErrOut)
		}
	}
	for n, want := range map[string]int{"5": cli.ExitYes, "300": cli.ExitIncomplete} {
		ctx, stop := context.WithCancel(t.Context())
		out, errOut := &onText{text: `"stage":"LogClose"`, seen: stop}, &onText{seen: func() {}}
		code := runCommand(ctx, []string{"audit", "tail", "-f", dir, "-n", n, "-o", "jsonl"}, strings.NewReader(""), out, errOut)
		if lines := strings.Count(out.String(), "\n"); code != want || n == "5" && lines != 5 || n != "5" && lines < 60 {
			t.Errorf("-f -n %s: exit code %d, %d lines\n%s", n, code, lines, errOut.String())
		}
		stop()
	}
}
