// Package policycmd is "pipeguard policy": it checks, tests, formats, starts and evaluates Rego policies.
package policycmd

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/policysource"
)

var errInterrupted = errors.New("interrupted before there was an answer")

// NewCommand returns "pipeguard policy".
func NewCommand() *cobra.Command {
	return cli.Group("policy", "Check, test, format, begin, try and express policies", `Works on a directory of Rego modules (*.rego, *_test.rego, subdirectories too) as the webhook would load it:
under the same limits and with the same few builtin functions. Modules of package pipeguard.node are policies of nodes, and
treated as the proxy would.`,
		untilInterrupted(newCheck()), untilInterrupted(newTest()), newFmt(), newInit(), untilInterrupted(newEval()), untilInterrupted(newFloor()),
	)
}

// untilInterrupted makes a command return as soon as its context ends, although nothing interrupts OPA's compiler. What it was doing
// goes on until the process ends, so the command must write no files.
func untilInterrupted(cmd *cobra.Command) *cobra.Command {
	work := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		done := make(chan error, 1)
		go func() { done <- work(cmd, args) }()
		select {
		case err := <-done:
			return err
		case <-cmd.Context().Done():
			return cli.BadInput(errInterrupted)
		}
	}
	return cmd
}

// directoryOr wants a directory of policies, unless policy objects are named: then the built-in policies go with them.
func directoryOr(a *policysource.Additions) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && len(a.Objects) > 0 {
			return nil
		}
		return cli.Argument("a directory of policies, or objects with --policies")(cmd, args)
	}
}
