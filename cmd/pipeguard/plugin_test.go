package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/test/clitest"
)

// asPlugin runs a command line of the program as kubectl runs it.
func asPlugin(t *testing.T, args ...string) clitest.Result {
	t.Helper()
	root := NewRoot()
	cli.AsPlugin(root)
	var out, errOut strings.Builder
	code := cli.Run(t.Context(), root, args, strings.NewReader(""), &out, &errOut)
	return clitest.Result{Code: code, Out: out.String(), ErrOut: errOut.String()}
}

func TestTheHelpOfThePlugin(t *testing.T) {
	for _, name := range []string{"status", "explain", "review"} {
		got := asPlugin(t, name, "--help")
		if got.Code != cli.ExitYes || got.ErrOut != "" {
			t.Errorf("%s: exit code %d, %s", name, got.Code, got.ErrOut)
		}
		clitest.Golden(t, "kubectl-"+name+".txt", got.Out)
	}
}

// As a plugin, no help names the program as it is called elsewhere.
func TestThePluginIsNamedAsItIsCalled(t *testing.T) {
	root := NewRoot()
	cli.AsPlugin(root)
	count := 0
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		count++
		for _, text := range []string{cmd.Short, cmd.Long, cmd.Example, cmd.UsageString()} {
			for _, c := range root.Commands() {
				call := "pipeguard " + c.Name() + " "
				if n, plugin := strings.Count(text, call), strings.Count(text, "kubectl "+call); n != plugin {
					t.Errorf("%s: %d of %d times, %q is not behind kubectl:\n%s", cmd.CommandPath(), n-plugin, n, call, text)
				}
			}
		}
		for _, c := range cmd.Commands() {
			look(c)
		}
	}
	if look(root); count < 30 {
		t.Errorf("only %d commands were found", count)
	}
}
