package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func newAudit() *cobra.Command {
	return group("audit", "Read the audit log of a proxy or webhook, and verify it", `Reads logs of audit records, one JSON object a line, on any system, also while they are being written: a directory of segments, a file of
records, or - for standard input. No log is changed.

Whether a log can be trusted is the question of "verify"; begin with it, or with "report", whose page begins with its answer.`,
		newAuditVerify(), newAuditProve(), newAuditCheck(),
		newAuditShow(), newAuditSearch(), newAuditTail(), newAuditStats(), newAuditExport(), newAuditHunt(), newAuditReport(),
	)
}

// withFile calls use with an open file, or with standard input for "-".
func withFile(cmd *cobra.Command, name string, use func(io.Reader) error) error {
	if name == "-" {
		return use(cmd.InOrStdin())
	}
	f, err := os.Open(name) //nolint:gosec // the user names the file to read
	if err != nil {
		return badInput(err)
	}
	defer f.Close() //nolint:errcheck // only read
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return badInput(fmt.Errorf("%s is a directory", name))
	}
	return use(f)
}
