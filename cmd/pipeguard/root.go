package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// streams are the standard streams, so that tests can have their own.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run executes one command line and returns the exit code of the process.
func run(ctx context.Context, args []string, s streams) int {
	root := newRoot()
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for "use os.Args"
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	cmd, err := root.ExecuteContextC(ctx)
	code, message := verdict(err)
	if message != "" {
		// Nothing is left to be done if even this cannot be written.
		_, _ = fmt.Fprintf(s.err, "%s: %s\n", cmd.CommandPath(), message)
	}
	return code
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "pipeguard",
		Short: "Judge pods and pipe paths, test policies, call a proxy, read and verify audit logs",
		Long: `Pipeguard guards the named pipes of privileged services on Windows nodes against pods that should not have them.
This program is its desk side: it gives the verdicts of the admission webhook without a cluster.

Exit codes, of every command:
` + exitTable(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		RunE:              func(cmd *cobra.Command, _ []string) error { return needsCommand(cmd) },
		Args:              cobra.ArbitraryArgs,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return badInput(fmt.Errorf("%w; see %q", err, cmd.CommandPath()+" --help"))
	})
	root.AddCommand(
		newCanonical(),
		newReview(),
		newPolicy(),
		newCall(),
		newAudit(),
		newACL(),
		newKeys(),
		newBundle(),
		newVersion(),
	)
	return root
}

// group makes a command that only groups others.
func group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return needsCommand(cmd) },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// needsCommand is what a command that only groups others answers when it is called itself.
func needsCommand(cmd *cobra.Command) error {
	if args := cmd.Flags().Args(); len(args) > 0 {
		cmd.SuggestionsMinimumDistance = 2 // letters to change
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			return badInput(fmt.Errorf("unknown command %q; did you mean %q?", args[0], near[0]))
		}
		return badInput(fmt.Errorf("unknown command %q; see %q", args[0], cmd.CommandPath()+" --help"))
	}
	if err := cmd.Help(); err != nil {
		return badInput(err)
	}
	return badInput(fmt.Errorf("name a command"))
}
