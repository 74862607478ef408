package auditcmd

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/query"
	"github.com/pipeguard/pipeguard/test/clitest"
)

// plant puts a segment beside those of a log, whose first record says that they are void.
func plant(t *testing.T, dir, name string, seq uint64) {
	t.Helper()
	void := filepath.Base(onlySegment(t, dir))
	text := fmt.Sprintf(`{"v":1,"seq":%d,"type":"log","stage":"LogOpen","time":"2026-03-02T12:00:00Z","session":"s","id":"","log":{"void":[%q]},"prev":"%s"}`+"\n", seq, void, strings.Repeat("A", 43)+"=")
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// readers are the commands that show records.
func readers(dir string) map[string][]string {
	return map[string][]string{
		"show": {"show", dir}, "show one": {"show", dir, "3"}, "search": {"search", dir}, "search, and stop early": {"search", dir, "--limit", "1"}, "stats": {"stats", dir, "--by", "type"},
		"export": {"export", dir, "--format", "csv"}, "hunt": {"hunt", dir}, "tail": {"tail", dir}, "check": {"check", dir}, "report": {"report", dir, "-o", "-"},
	}
}

func TestEveryCommandThatReadsALogSaysHowFarItIsVerified(t *testing.T) {
	dir, keys, outside := keptLog(t)
	given := []string{"--keys", keys, "--checkpoint", outside}
	for name, args := range readers(dir) {
		if got := evidenceCommand(t, append(args, given...)...); !strings.Contains(got.ErrOut, "verified up to 5\n") || strings.Contains(got.ErrOut, "not verified") {
			t.Errorf("%s: %q", name, got.ErrOut)
		}
		if got := evidenceCommand(t, append(args, "--keys", keys)...); !strings.Contains(got.ErrOut, "verified up to 5, by checkpoints that lay beside the log alone") {
			t.Errorf("%s, without a checkpoint from elsewhere: %q", name, got.ErrOut)
		}
		if got := evidenceCommand(t, args...); !strings.Contains(got.ErrOut, "not verified: no keys given\n") {
			t.Errorf("%s, without keys: %q", name, got.ErrOut)
		}
	}
	if got := evidenceCommand(t, "prove", dir, "--seq", "3", "--keys", keys); got.Code != 0 || !strings.HasPrefix(got.ErrOut, "verified up to 5, by") {
		t.Errorf("prove: %+v", got)
	}
	for _, name := range []string{"audit-09999999999999999999-0b7e6a52-7c1d-4a59-9d62-3f6f6f0f7e10.jsonl", "audit-00000000000000000001-0b7e6a52-7c1d-4a59-9d62-3f6f6f0f7e10.jsonl", "audit-1.jsonl"} {
		dir, keys, outside := keptLog(t)
		seq := uint64(1)
		if strings.HasPrefix(name, "audit-0999") {
			seq = 9999999999999999999
		}
		plant(t, dir, name, seq)
		for command, args := range readers(dir) {
			got := evidenceCommand(t, append(args, "--keys", keys, "--checkpoint", outside)...)
			if got.Code != cli.ExitNo || !strings.Contains(got.ErrOut, "not verified: the log was changed") {
				t.Errorf("%s beside %s: exit code %d, %q", command, name, got.Code, got.ErrOut)
			}
		}
		if got := evidenceCommand(t, "search", dir, "--type", "request", "--count", "--keys", keys); got.Out != "4\n" {
			t.Errorf("beside %s %s of 4 records are shown", name, got.Out)
		}
		if got := evidenceCommand(t, "prove", dir, "--seq", "3", "--keys", keys); got.Code != cli.ExitNo || got.Out != "" {
			t.Errorf("proved beside %s: %+v", name, got)
		}
	}
}

// Of several logs, each is named with how it stands.
func TestALogThatCannotBeVerifiedIsNamedBesideOthers(t *testing.T) {
	dir, keys, outside := keptLog(t)
	got := evidenceCommand(t, "search", dir, "-", "--count", "--keys", keys, "--checkpoint", outside)
	if got.Code != 0 || !strings.Contains(got.ErrOut, dir+": verified up to 5\n") || !strings.Contains(got.ErrOut, "\n-: not verified: ") {
		t.Errorf("%+v", got)
	}
}

func TestACosignatureIsRequiredWhereTheKeyOfAWitnessIsKnown(t *testing.T) {
	dir, keys, outside := keptLog(t)
	witness := filepath.Join(t.TempDir(), "witness")
	if got := execute(t, "", "keys", "generate", witness, "--for", "witness", "--name", "example.com/w"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	args := []string{"verify", dir, "--keys", keys, "--checkpoint", outside}
	if got := evidenceCommand(t, args...); got.Code != 0 {
		t.Errorf("without a witness's key: %+v", got)
	}
	args = append(args, "--keys", witness+".pub")
	if got := evidenceCommand(t, args...); got.Code != cli.ExitIncomplete || !strings.Contains(got.Out, "no witness among the keys cosigned") {
		t.Errorf("with it: %+v", got)
	}
	if got := evidenceCommand(t, append(args, "--require-witness=false")...); got.Code != 0 {
		t.Errorf("with it, and not wanted: %+v", got)
	}
}

func TestTheLogsOwnFilesAreNotHeldElsewhere(t *testing.T) {
	dir, keys, outside := keptLog(t)
	own := filepath.Join(dir, evidence.CheckpointFile)
	text, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	put := func(name string, text []byte) string {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	witnessed, err := os.ReadFile(outside)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if err := os.Mkdir(filepath.Join(dir, "start-of-something"), 0o700); err != nil {
		t.Fatal(err)
	}
	link, hard := filepath.Join(elsewhere, "link"), filepath.Join(elsewhere, "hard")
	if os.Symlink(own, link) != nil || os.Link(own, hard) != nil {
		link, hard = own, own // no links can be made here
	}
	for name, file := range map[string]string{
		"the file itself": own, "another way to it": filepath.Join(dir, "..", filepath.Base(dir), evidence.CheckpointFile), "a link to it": link, "another name of it": hard,
		"a copy of it": put(filepath.Join(elsewhere, "copy"), text), "a copy without its empty lines at the end": put(filepath.Join(elsewhere, "short"), bytes.TrimSuffix(text, []byte("\n"))),
		"a copy without the time of signing": put(filepath.Join(elsewhere, "untimed"), bytes.Join(lines[:len(lines)-2], nil)),
		"another file below the directory":   put(filepath.Join(dir, "start-of-something", "x"), witnessed),
	} {
		got := evidenceCommand(t, "verify", dir, "--keys", keys, "--checkpoint", file)
		if got.Code != cli.ExitIncomplete || !strings.Contains(got.Out, "does not count as held elsewhere") {
			t.Errorf("%s: exit code %d, %s", name, got.Code, got.Out)
		}
	}
}

// A forged record may stand in the bytes that no segment counts: a reader of that file alone, or of a stream, has to go by what is in it.
func TestARecordThatDoesNotFollowIsMarked(t *testing.T) {
	dir, _, _ := keptLog(t)
	text, err := os.ReadFile(onlySegment(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	forged := strings.Replace(lines[4], `"prev":"`, `"prev":"x`, 1)
	forged = strings.Replace(forged, `="}`, `"}`, 1)
	for name, c := range map[string]struct {
		in   string
		want string
	}{
		"another hash":       {strings.Join(lines[:4], "") + forged, "!5 "},
		"a number again":     {strings.Join(lines[:4], "") + lines[2], "!3 "},
		"a number left out":  {lines[0] + lines[2], "!3 "},
		"no hash at all":     {lines[0] + lines[1][:strings.Index(lines[1], `,"prev"`)] + "}\n", "!2 "},
		"the records as are": {strings.Join(lines, ""), ""},
	} {
		got := execute(t, c.in, "audit", "show", "-")
		if marked := strings.Contains(got.Out, "!"); marked != (c.want != "") || !strings.Contains(got.Out, c.want) || marked != strings.Contains(got.ErrOut, "follow on the record before") {
			t.Errorf("%s: %s%s", name, got.Out, got.ErrOut)
		}
	}
}

func TestALogThatIsGivenTwiceIsRefused(t *testing.T) {
	dir, _, _ := keptLog(t)
	file := clitest.Stream(t, denial("x"))
	copied := filepath.Join(t.TempDir(), filepath.Base(onlySegment(t, dir)))
	text, err := os.ReadFile(onlySegment(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, names := range [][]string{{dir, dir}, {dir, dir + "/."}, {dir, onlySegment(t, dir)}, {file, file}, {onlySegment(t, dir), copied}} {
		if got := evidenceCommand(t, append([]string{"search", "--count"}, names...)...); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "is there twice") || got.Out != "" {
			t.Errorf("%q: %+v", names, got)
		}
	}
}

func TestARecordIsShownByItsNumber(t *testing.T) {
	file := clitest.Stream(t, intent("a"), end("a", 2), denial("b"))
	for number, want := range map[string]string{
		"2": "Intent, record 2", "3": "Intent, record 2", "4": "End, record 4", "1": "LogOpen, record 1",
	} {
		if got := evidenceCommand(t, "show", file, number, "--neighbours", "0"); got.Code != 0 || !strings.HasPrefix(got.Out, want) {
			t.Errorf("record %s: %+v", number, got)
		}
	}
	if got := evidenceCommand(t, "show", file, "99"); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "or that number") {
		t.Errorf("a number that is not there: %+v", got)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := execute(t, string(text), "audit", "show", "-", "3"); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, `name its id, "a"`) {
		t.Errorf("of standard input: %+v", got)
	}
}

// A hole takes nothing of the disk and hours to read.
func TestAHoleHoldsNoReaderUp(t *testing.T) {
	dir, keys, _ := keptLog(t)
	file := onlySegment(t, dir)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 50<<30); err != nil {
		t.Skip("no holes here:", err)
	}
	for _, args := range [][]string{{"--keys", keys}, nil} {
		got := evidenceCommand(t, append([]string{"search", dir, "-o", "jsonl"}, args...)...)
		if got.Code != cli.ExitIncomplete || got.Out != string(text) || !strings.Contains(got.ErrOut, "is not read") {
			t.Errorf("%q: exit code %d, %d of %d bytes, %q", args, got.Code, len(got.Out), len(text), got.ErrOut)
		}
	}
	endless := filepath.Join(t.TempDir(), "x.jsonl")
	if err := os.WriteFile(endless, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(endless, 50<<30); err != nil {
		t.Fatal(err)
	}
	if got := evidenceCommand(t, "search", endless, "--count"); got.Code != cli.ExitIncomplete || got.Out != "5\n" || !strings.Contains(got.ErrOut, "is not read") {
		t.Errorf("a file: %+v", got)
	}
}

func TestPackedSegmentsAreVerifiedAndShown(t *testing.T) {
	dir, keys, outside := keptLog(t)
	file := onlySegment(t, dir)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".gz", out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, file + ".gz"} {
		got := evidenceCommand(t, "search", name, "-o", "jsonl", "--keys", keys, "--checkpoint", outside)
		if got.Code != 0 || got.Out != string(text) || got.ErrOut != "verified up to 5\n" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := evidenceCommand(t, "prove", dir, "--seq", "3", "--keys", keys, "--checkpoint", outside); got.Code != 0 || !strings.HasPrefix(got.Out, "c2sp.org/tlog-proof@v1\n") {
		t.Errorf("prove: %+v", got)
	}
}

// Which of a segment and a packed copy of it is genuine, no command can know: of a log that was changed both are shown, and else none.
func TestAPackedCopyBesideItsSegmentHidesNothing(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "no gzip": "x"} {
		dir, keys, outside := keptLog(t)
		twin := onlySegment(t, dir) + ".gz"
		if err := os.WriteFile(twin, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		given := []string{"--keys", keys, "--checkpoint", outside}
		for command, args := range readers(dir) {
			got := evidenceCommand(t, append(args, given...)...)
			if got.Code != cli.ExitNo || !strings.HasPrefix(got.ErrOut, "not verified: the log was changed: "+twin+": ") || got.Out == "" && command != "hunt" {
				t.Errorf("%s, %s: %+v", name, command, got)
			}
		}
		count := []string{"search", dir, "--type", "request", "--count"}
		if got := evidenceCommand(t, append(count, given...)...); got.Out != "4\n" {
			t.Errorf("%s: %+v", name, got)
		}
		if got := evidenceCommand(t, count...); got.Code != cli.ExitBadInput || got.Out != "" || !strings.Contains(got.ErrOut, "is there twice") {
			t.Errorf("%s, without keys: %+v", name, got)
		}
	}
}

// Words of a closed field are offered, and each one that is offered is taken.
func TestTheShellOffersTheWordsThatAreTaken(t *testing.T) {
	for _, flag := range []string{"type", "stage", "decision", "effect", "result", "host", "code"} {
		got := execute(t, "", "__complete", "audit", "search", "--"+flag, "")
		offered := strings.Fields(strings.Split(got.Out, ":")[0])
		if len(offered) != len(query.Words(flag)) || len(offered) < 2 {
			t.Errorf("--%s: %q", flag, got.Out)
		}
		for _, word := range offered {
			if got := execute(t, "", "audit", "search", clitest.Stream(t, audit.Event{Type: audit.TypeLog, Stage: audit.StageLogClose}), "--"+flag, word); got.Code != 0 {
				t.Errorf("--%s %s: %+v", flag, word, got)
			}
		}
		if got := execute(t, "", "audit", "search", "-", "--"+flag, "frobnicate"); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, query.Words(flag)[0]) {
			t.Errorf("--%s frobnicate: %+v", flag, got)
		}
	}
	for _, flag := range []string{"--output", "-o"} {
		if got := execute(t, "", "__complete", "audit", "search", flag, ""); !strings.HasPrefix(got.Out, "table\nwide\njsonl\n") {
			t.Errorf("%s: %q", flag, got.Out)
		}
	}
}
