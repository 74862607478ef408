package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// Argument requires exactly one argument; what names it, as in "a directory".
func Argument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return BadInput(fmt.Errorf("name %s: %s", what, cmd.UseLine()))
		case 1:
			return nil
		}
		return BadInput(fmt.Errorf("takes one argument, %s, and not %d: %q is too many", what, len(args), args[1]))
	}
}

// Arguments requires at least one argument; what names the first.
func Arguments(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return BadInput(fmt.Errorf("name %s: %s", what, cmd.UseLine()))
		}
		return nil
	}
}

// NoArguments allows none; hint says where they belong and may be empty.
func NoArguments(hint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return BadInput(fmt.Errorf("unexpected argument %q%s", args[0], hint))
	}
}

// Require makes flags of a command required.
func Require(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // only an unknown name can get here
		}
	}
}

// WithFile calls use with an open file, or with standard input for "-".
func WithFile(cmd *cobra.Command, name string, use func(io.Reader) error) error {
	if name == "-" {
		return use(cmd.InOrStdin())
	}
	f, err := os.Open(name) //nolint:gosec // the user names the file to read
	if err != nil {
		return BadInput(err)
	}
	defer f.Close() //nolint:errcheck // only read
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return BadInput(fmt.Errorf("%s is a directory", name))
	}
	return use(f)
}
