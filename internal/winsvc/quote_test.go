package winsvc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgumentsSurviveTheCommandLine(t *testing.T) {
	for _, args := range [][]string{
		{`C:\Program Files\Pipeguard\proxy.exe`, "-windows-service", `-working-dir=D:\my data\`, "--config", `C:\ProgramData\Pipeguard\proxy.yaml`},
		{"proxy.exe", ""},
		{"proxy.exe", `a"b`, `"`, `""`, `a "b" c`, `\"`, `\\"`, ` \`, `\\`, `a\\b c\\`, "\t"},
		{"proxy.exe", "--pipe-sddl", `D:P(A;;FA;;;SY)`},
	} {
		line := CommandLine(args[0], args[1:]...)
		if diff := cmp.Diff(args, SplitCommandLine(line)); diff != "" {
			t.Errorf("%s:\n%s", line, diff)
		}
	}
	if got := CommandLine(`C:\Program Files\x.exe`, "-a"); got != `"C:\Program Files\x.exe" -a` {
		t.Errorf("a path with a space must be in quotes, or Windows looks for C:\\Program.exe first: %s", got)
	}
}

func TestAWrittenCommandLineIsReadAsWindowsReadsIt(t *testing.T) {
	for line, want := range map[string][]string{
		`"C:\etc\csi proxy.exe"  -windows-service -log_file=C:\x.log `: {`C:\etc\csi proxy.exe`, "-windows-service", `-log_file=C:\x.log`},
		`C:\x.exe -a="b c" "d""e"`:                                     {`C:\x.exe`, "-a=b c", `d"e`},
		"":                                                             nil, "  ": nil, `""`: {""}, `"open end`: {"open end"}, `a\`: {`a\`},
	} {
		if diff := cmp.Diff(want, SplitCommandLine(line)); diff != "" {
			t.Errorf("%s:\n%s", line, diff)
		}
	}
}

func FuzzCommandLine(f *testing.F) {
	f.Add("a b", `c\"`)
	f.Fuzz(func(t *testing.T, a, b string) {
		if got := SplitCommandLine(CommandLine("x.exe", a, b)); !cmp.Equal(got, []string{"x.exe", a, b}) {
			t.Errorf("%q, %q became %q", a, b, got)
		}
	})
}
