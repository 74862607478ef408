package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// argument wants exactly one argument; what says what it is, as in "a directory".
func argument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return badInput(fmt.Errorf("name %s: %s", what, cmd.UseLine()))
		case 1:
			return nil
		}
		return badInput(fmt.Errorf("takes one argument, %s, and not %d: %q is too many", what, len(args), args[1]))
	}
}

// arguments wants at least one argument.
func arguments(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return badInput(fmt.Errorf("name %s: %s", what, cmd.UseLine()))
		}
		return nil
	}
}

// noArguments wants none; hint says where they belong and may be empty.
func noArguments(hint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return badInput(fmt.Errorf("unexpected argument %q%s", args[0], hint))
	}
}
