package main

import (
	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/version"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the release, commit, Go release and platform of this program",
		Args:  noArguments(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := newPrinter(cmd.OutOrStdout())
			p.printf("%s\n", version.String("pipeguard"))
			return p.done(nil)
		},
	}
}
