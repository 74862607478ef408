package main

import (
	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/aclcmd"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/auditcmd"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/bundlecmd"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/clustercmd"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/keyscmd"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/policycmd"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/reviewcmd"
)

func NewRoot() *cobra.Command {
	return cli.Group("pipeguard", "Judge pods and pipe paths, test policies, call a proxy, read and verify audit logs", `Pipeguard guards the named pipes of privileged services on Windows nodes against pods that should not have them.
This program works offline: it gives the verdicts of the admission webhook without a cluster. Only "pipeguard status",
"pipeguard explain" and "pipeguard review --live" ask a cluster, and change nothing in it. As kubectl-pipeguard in PATH the
program is the plugin "kubectl pipeguard".

Exit codes, of every command:
`+cli.ExitTable(),
		newCanonical(),
		clustercmd.NewStatus(),
		reviewcmd.NewCommand(&clustercmd.Cluster{}),
		reviewcmd.NewExplain(&clustercmd.Cluster{}),
		policycmd.NewCommand(),
		newCall(),
		auditcmd.NewCommand(),
		aclcmd.NewCommand(),
		keyscmd.NewCommand(),
		bundlecmd.NewCommand(),
		newVersion(),
	)
}
