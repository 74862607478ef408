package auditcmd

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/clitest"
)

// kept is a directory that the real writer keeps: two runs, of which the first one was killed within a line and left an operation open.
func kept(t *testing.T, first, second []audit.Event) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	clitest.Segments(t, dir, first...)
	name := segmentIn(t, dir)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	whole := text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1] // without the closing
	if err := os.WriteFile(name, append(whole, `{"v":1,"seq":9`...), 0o600); err != nil {
		t.Fatal(err)
	}
	clitest.Segments(t, dir, second...)
	return dir
}

// segmentIn is the only segment of a directory.
func segmentIn(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	return names[0]
}

func TestEveryReaderTakesADirectoryOfSegments(t *testing.T) {
	dir := kept(t, []audit.Event{intent("a"), end("a", 1), intent("open")}, []audit.Event{denial("b"), intent("call")})
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"check":         {[]string{"audit", "check", dir}, cli.ExitIncomplete, "(id \"call\") is an intent that nothing ends\n9 records in 2 sessions: 3 intents, 3 ends of requests"},
		"show":          {[]string{"audit", "show", dir}, cli.ExitYes, "orphan"},
		"show an id":    {[]string{"audit", "show", dir, "a"}, cli.ExitYes, "Intent, record 2"},
		"search":        {[]string{"audit", "search", dir, "--count"}, cli.ExitYes, "9\n"},
		"stats":         {[]string{"audit", "stats", dir, "--by", "type"}, cli.ExitYes, "request"},
		"tail":          {[]string{"audit", "tail", dir, "-n", "2"}, cli.ExitYes, "close"},
		"export":        {[]string{"audit", "export", dir, "--format", "csv"}, cli.ExitYes, "Orphaned"},
		"report":        {[]string{"audit", "report", dir, "-o", "-"}, cli.ExitYes, "the next start closed it"},
		"verify":        {[]string{"audit", "verify", dir}, cli.ExitIncomplete, "14 bytes that are no part of the log"},
		"a single file": {[]string{"audit", "search", segmentIn(t, kept1(t)), "--count"}, cli.ExitYes, "3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, "", c.args...)
			if got.Code != c.code || !strings.Contains(got.Out+got.ErrOut, c.want) {
				t.Errorf("exit code %d, want %d; %q is not in\n%s%s", got.Code, c.code, c.want, got.Out, got.ErrOut)
			}
		})
	}
}

// kept1 is a directory of one segment.
func kept1(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	clitest.Segments(t, dir, denial("x"))
	return dir
}

func TestALongReadingEndsWhenItIsAskedTo(t *testing.T) {
	dir := kept1(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, args := range [][]string{
		{"search", dir}, {"stats", dir}, {"show", dir}, {"show", dir, "x"}, {"tail", dir}, {"check", dir}, {"hunt", dir}, {"export", dir, "--format", "csv"}, {"report", dir, "-o", "-"}, {"verify", dir},
	} {
		var out, errOut bytes.Buffer
		if code := runCommand(ctx, append([]string{"audit"}, args...), strings.NewReader(""), &out, &errOut); code < cli.ExitBadInput || !strings.Contains(errOut.String(), "canceled") {
			t.Errorf("%q: exit code %d, %q", args, code, errOut.String())
		}
	}
}
