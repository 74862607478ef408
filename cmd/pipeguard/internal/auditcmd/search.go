package auditcmd

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
)

func newSearch() *cobra.Command {
	var limit int
	var isCount bool
	cmd := &cobra.Command{
		Use:   "search LOG...",
		Short: "Print the audit records that fit filters",
		Long: `Prints the records that fit, in the order of the log.

` + aboutLogs + `

` + aboutFilters + `

The table is that of "pipeguard audit show". With -o jsonl records are printed as they stand in the log, for other programs. A call that
was admitted has two records: --stage end leaves out the intents.

Exit code: 0 if all lines are records, whether any matches or not, 1 if the log was changed, 3 if lines are not records or records are missing; both are
named on standard error.`,
		Example: `  pipeguard audit search /var/log/pipeguard --namespace kube-system --decision deny --since 2h
  pipeguard audit search copy/ --path 'C:\var\lib\kubelet' --where 'verb=write result!=ok' -o wide
  pipeguard audit search copy/ --decision logonly --stage end --count`,
		Args: logs,
	}
	out := cli.AddChoice(cmd, "output", "o", "output format", "table", "wide", "jsonl")
	read := addReading(cmd)
	cmd.Flags().IntVar(&limit, "limit", 0, "stop after so many records; 0 is no limit")
	cmd.Flags().BoolVar(&isCount, "count", false, "print their number alone: a summary counts for as many as it stands for, \"at most\" if not all of them need fit")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if limit < 0 {
			return cli.BadInput(errors.New("--limit must not be negative"))
		}
		in, records, err := read(args)
		if err != nil {
			return err
		}
		s, shown, count := newSink(cmd.OutOrStdout(), out.Value), 0, uint64(0)
		for r, err := range records {
			if err != nil {
				return written(s, in, cli.BadInput(err))
			}
			shown, count = shown+1, count+r.Count()
			if !isCount {
				s.record(r)
			}
			if shown == limit || s.err() != nil {
				break
			}
		}
		if isCount {
			p := cli.NewPrinter(cmd.OutOrStdout())
			if len(in.doubts()) > 0 {
				p.Printf("at most ")
			}
			p.Printf("%d\n", count)
			return p.Done(in.done(nil))
		}
		return written(s, in, nil)
	}
	return cmd
}
