// Package cli runs the commands of pipeguard: exit codes, arguments, flags of a few words, reports as text or JSON, and output files.
package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Run executes one command line of a program and returns its exit code.
func Run(ctx context.Context, root *cobra.Command, args []string, in io.Reader, out, errOut io.Writer) int {
	root.SilenceUsage, root.SilenceErrors, root.CompletionOptions.HiddenDefaultCmd = true, true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return BadInput(fmt.Errorf("%w; see %q", err, cmd.CommandPath()+" --help"))
	})
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for "use os.Args"
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	code, message := Verdict(err)
	if message != "" {
		// Nothing is left to be done if even this cannot be written.
		_, _ = fmt.Fprintf(errOut, "%s: %s\n", cmd.CommandPath(), message)
	}
	return code
}

// Group returns a command that only groups others. By itself it answers that the name of one is missing or unknown.
func Group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.ArbitraryArgs}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			cmd.SuggestionsMinimumDistance = 2 // letters to change
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				return BadInput(fmt.Errorf("unknown command %q; did you mean %q?", args[0], near[0]))
			}
			return BadInput(fmt.Errorf("unknown command %q; see %q", args[0], cmd.CommandPath()+" --help"))
		}
		if err := cmd.Help(); err != nil {
			return BadInput(err)
		}
		return BadInput(fmt.Errorf("name a command"))
	}
	cmd.AddCommand(commands...)
	return cmd
}
