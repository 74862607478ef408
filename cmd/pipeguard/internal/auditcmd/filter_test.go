package auditcmd

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/test/clitest"
)

func TestAFilterThatMatchesNothingIsRefused(t *testing.T) {
	file := clitest.Stream(t, denial("a"))
	for _, args := range [][]string{
		{"--code", "17"}, {"--where", "namespace==x"}, {"--namespace", " x"}, {"--path", "relative"}, {"--seq", "0"}, {"--version", "1"}, {"--pod", "a/b/c"}, {"--pipe", `x\disk-v1`}, {"--where", "pid=0"},
	} {
		for name, command := range readersWithFilters(file) {
			if got := evidenceCommand(t, append(command, args...)...); got.Code != cli.ExitBadInput || got.Out != "" || !strings.Contains(got.ErrOut, "column ") {
				t.Errorf("%s %q: %+v", name, args, got)
			}
		}
	}
	if got := evidenceCommand(t, "search", file, "--code", "7", "--count"); got.Out != "1\n" || got.Code != 0 {
		t.Errorf("a code by its number: %+v", got)
	}
}

func readersWithFilters(log string) map[string][]string {
	return map[string][]string{
		"search": {"search", log}, "count": {"search", log, "--count"}, "tail": {"tail", log}, "stats": {"stats", log}, "export": {"export", log, "--format", "csv"}, "hunt": {"hunt", log}, "report": {"report", log, "-o", "-"},
	}
}

func TestAValueThatNoRecordOfTheLogHasIsNamed(t *testing.T) {
	dir, keys, _ := keptLog(t)
	for _, log := range []string{clitest.Stream(t, intent("a"), end("a", 2)), dir} {
		for name, command := range readersWithFilters(log) {
			command = append(command, "--pipe", "disk-v9", "--where", "method!=Mkdri", "--type", "request")
			if log == dir {
				command = append(command, "--keys", keys)
			}
			got := evidenceCommand(t, command...)
			if got.Code != 0 || !strings.HasPrefix(got.ErrOut, "no record of this log has pipe \"disk-v9\"\nno record of this log has method \"Mkdri\"\n") {
				t.Errorf("%s: exit code %d, %q", name, got.Code, got.ErrOut)
			}
		}
	}
	file := clitest.Stream(t, intent("a"), end("a", 2))
	for name, args := range map[string][]string{
		"it is there": {"search", file, "--pipe", "filesystem-v1alpha1"}, "not all was read": {"search", file, "--id", "a", "--where", "id!=x", "--limit", "1"}, "a word that is known": {"search", file, "--decision", "deny"},
	} {
		if got := evidenceCommand(t, args...); got.Code != 0 || got.ErrOut != "not verified: no keys given\n" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := evidenceCommand(t, "search", file, clitest.Stream(t, denial("x")), "--node", "n"); !strings.HasPrefix(got.ErrOut, "no record of these logs has node \"n\"\n") {
		t.Errorf("two logs: %+v", got)
	}
}
