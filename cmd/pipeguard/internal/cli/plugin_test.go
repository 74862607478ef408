package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestAPluginIsKnownByTheNameOfItsFile(t *testing.T) {
	for name, want := range map[string]bool{
		"kubectl-pipeguard": true, "/usr/local/bin/kubectl-pipeguard": true, `C:\bin\kubectl-pipeguard.exe`: true, `C:\bin\KUBECTL-PIPEGUARD.EXE`: true,
		"pipeguard": false, "pipeguard.exe": false, "kubectl-pipeguard-x": false, "/kubectl-pipeguard/pipeguard": false, "": false, "xkubectl-pipeguard": false,
	} {
		if got := IsPlugin(name, "pipeguard"); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}

func TestAPluginIsCalledThroughKubectl(t *testing.T) {
	program := func() *cobra.Command {
		judge := &cobra.Command{
			Use: "judge FILE", Short: "Judge", Long: "As \"tool judge\" does; see tool.dev/judge and a tool of its own.",
			Example: "  tool judge x\n  cat x | tool judge -", Args: Argument("a file"), RunE: func(*cobra.Command, []string) error { return nil },
		}
		root := Group("tool", "A tool", "tool judges.", judge)
		AsPlugin(root)
		return root
	}
	run := func(args ...string) string {
		var out, errOut bytes.Buffer
		Run(t.Context(), program(), args, strings.NewReader(""), &out, &errOut)
		return out.String() + errOut.String()
	}
	help := run("judge", "--help")
	for _, want := range []string{`As "kubectl tool judge" does; see tool.dev/judge and a tool of its own.`, "  kubectl tool judge x\n  cat x | kubectl tool judge -", "kubectl tool judge FILE [flags]"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help lacks %q:\n%s", want, help)
		}
	}
	for want, args := range map[string][]string{
		"kubectl tool judge: name a file: kubectl tool judge FILE": {"judge"},
		`see "kubectl tool --help"`:                                {"frobnicate"},
		`see "kubectl tool judge --help"`:                          {"judge", "--frobnicate"},
	} {
		if got := run(args...); !strings.Contains(got, want) {
			t.Errorf("%q: %q lacks %q", args, got, want)
		}
	}
}
