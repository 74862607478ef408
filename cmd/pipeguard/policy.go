package main

import (
	"errors"

	"github.com/spf13/cobra"
)

var errInterrupted = errors.New("interrupted before there was an answer")

func newPolicy() *cobra.Command {
	return group("policy", "Check, test, format, begin and try policies", `Works on a directory of Rego modules (*.rego, *_test.rego, subdirectories too) as the webhook would load it:
under the same limits and with the same few builtin functions. Modules of package pipeguard.node are policies of nodes, and
treated as the proxy would.`,
		untilInterrupted(newPolicyCheck()), untilInterrupted(newPolicyTest()), newPolicyFmt(), newPolicyInit(), untilInterrupted(newPolicyEval()),
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
			return badInput(errInterrupted)
		}
	}
	return cmd
}

// directoryOr wants a directory of policies, unless policy objects are named: then the built-in policies go with them.
func directoryOr(a *additions) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && len(a.objects) > 0 {
			return nil
		}
		return argument("a directory of policies, or objects with --policies")(cmd, args)
	}
}

// first is the first argument, or none.
func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
