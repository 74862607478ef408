package winsvc

import (
	"syscall"
	"testing"

	"golang.org/x/sys/windows"
)

func TestQuotingIsThatOfWindows(t *testing.T) {
	for _, s := range []string{"", "a", "a b", `a"b`, `a\`, `a b\`, `a\"b c`, `\\"`, "\t", `C:\Program Files\`} {
		if got, want := escapeArg(s), syscall.EscapeArg(s); got != want {
			t.Errorf("%q is quoted as %s, Windows wants %s", s, got, want)
		}
		parsed, err := windows.DecomposeCommandLine("x.exe " + escapeArg(s))
		if err != nil || len(parsed) != 2 || parsed[1] != s {
			t.Errorf("%q arrives as %q, %v", s, parsed, err)
		}
	}
}
