package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/policies"
)

var errInterrupted = errors.New("interrupted before there was an answer")

func newPolicy() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Check, test, format, begin and try policies",
		Long: `Works on a directory of Rego modules (*.rego, *_test.rego, subdirectories too) as the webhook would load it:
under the same limits and with the same few builtin functions. Modules of package pipeguard.node are policies of nodes, and
treated as the proxy would.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return needsCommand(cmd) },
	}
	cmd.AddCommand(untilInterrupted(newPolicyCheck()), untilInterrupted(newPolicyTest()), newPolicyFmt(), newPolicyInit(), untilInterrupted(newPolicyEval()))
	return cmd
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

// loadModules reads a directory, or the policies that are built in if none is named.
func loadModules(dir string) (policy.Modules, error) {
	if dir == "" {
		return policy.LoadFS(policies.FS())
	}
	info, err := os.Stat(dir)
	if err != nil {
		return policy.Modules{}, err
	}
	if !info.IsDir() {
		return policy.Modules{}, fmt.Errorf("%s is not a directory", dir)
	}
	modules, err := policy.LoadFS(os.DirFS(dir))
	if err != nil {
		return policy.Modules{}, fmt.Errorf("%s: %w", dir, err)
	}
	if len(modules.Files) == 0 {
		return policy.Modules{}, fmt.Errorf("%s holds no *.rego", dir)
	}
	return modules, nil
}
