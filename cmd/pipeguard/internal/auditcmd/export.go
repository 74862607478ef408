package auditcmd

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/export"
)

func newExport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export LOG...",
		Short: "Print audit records in the formats of other systems",
		Long: `Prints the records that fit in another form, one a line:

  ocsf   events of the Open Cybersecurity Schema Framework 1.6: API Activity, Network Activity and Application Lifecycle
  ecs    documents of the Elastic Common Schema 8.17; fields it has no name for are below "pipeguard"
  csv    a table with a header, for spreadsheets: text that looks like a formula begins with an apostrophe

` + aboutLogs + `

` + aboutFilters + `

An export cannot be verified: keep the log.

Exit code: 0, 1 if the log was changed, or 3 if lines are not records or records are missing.`,
		Example: `  pipeguard audit export copy/ --format ocsf --since yesterday > events.jsonl`,
		Args:    logs,
	}
	form := cli.AddChoice(cmd, "format", "", "format", export.Formats()...)
	cmd.Flags().Lookup("format").DefValue = "" // it must be named
	read := addReading(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("format") {
			return cli.BadInput(errors.New("name a format with --format: ocsf, ecs or csv"))
		}
		in, records, err := read(args)
		if err != nil {
			return err
		}
		buffered := bufio.NewWriter(cmd.OutOrStdout())
		out, err := export.New(form.Value, buffered)
		if err != nil {
			return cli.BadInput(err)
		}
		var failed error
		isEmpty := true
		for r, err := range records {
			if failed = err; failed != nil {
				failed = cli.BadInput(failed)
				break
			}
			isEmpty = false
			if err := out.Record(r); err != nil {
				return cli.BadInput(fmt.Errorf("write output: %w", err))
			}
		}
		if failed == nil || !isEmpty { // a line of names alone would be an answer
			err = errors.Join(out.Flush(), buffered.Flush())
		}
		if err != nil {
			return cli.BadInput(fmt.Errorf("write output: %w", err))
		}
		return in.done(failed)
	}
	return cmd
}
