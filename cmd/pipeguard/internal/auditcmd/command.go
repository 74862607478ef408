// Package auditcmd is "pipeguard audit": it reads, searches, exports and verifies audit logs.
package auditcmd

import (
	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
)

// NewCommand returns "pipeguard audit".
func NewCommand() *cobra.Command {
	return cli.Group("audit", "Read the audit log of a proxy or webhook, and verify it", `Reads logs of audit records, one JSON object a line, on any system, also while they are being written: a directory of segments, a file of
records, or - for standard input. No log is changed.

Whether a log can be trusted is the question of "verify"; begin with it, or with "report", whose page begins with its answer.`,
		newVerify(), newProve(), newCheck(),
		newShow(), newSearch(), newTail(), newStats(), newExport(), newHunt(), newReport(),
	)
}
