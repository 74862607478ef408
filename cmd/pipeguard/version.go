package main

import (
	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/version"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the release, commit, Go release and platform of this program",
		Args:  cli.NoArguments(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := cli.NewPrinter(cmd.OutOrStdout())
			p.Printf("%s\n", version.String("pipeguard"))
			return p.Done(nil)
		},
	}
}
