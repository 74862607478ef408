package auditcmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

func newProve() *cobra.Command {
	var o evidence.VerifyOptions
	var keys []string
	var seq uint64
	cmd := &cobra.Command{
		Use:   "prove DIR --seq N --keys FILE",
		Short: "Print a proof that one record is in a log, which needs no log to be checked",
		Long: `Prints a C2SP tlog-proof (https://c2sp.org/tlog-proof): the record, its index, the hashes from it to the root, and the newest checkpoint
that the keys verify. It is checked before it is printed. The log's verifier key is enough to check it, with any
implementation: the leaf is SHA-256 of a zero byte and the record, a node SHA-256 of a one byte and its two halves (RFC 6962).

Exit code: 0 printed, 1 the log does not fit its checkpoint, 2 it cannot be proven: the record or a checkpoint is missing, or reading failed.`,
		Example: `  pipeguard audit prove /var/log/pipeguard/audit --seq 4711 --keys node-1.pub > record.tlog-proof`,
		Args:    cli.Argument("the directory of a log"),
	}
	addEvidenceFlags(cmd, &o, &keys)
	cmd.Flags().Uint64Var(&seq, "seq", 0, "number of the record, counted from 1")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if seq == 0 || len(keys) == 0 {
			return cli.BadInput(fmt.Errorf("name a record with --seq and the log's verifier key with --keys"))
		}
		if err := readVerifierKeys(&o, keys); err != nil {
			return cli.BadInput(err)
		}
		o.Dir = args[0]
		verified, err := evidence.Verify(cmd.Context(), o)
		if err != nil {
			return cli.BadInput(err)
		}
		if verified.Fault != nil {
			return cli.No(verified.Fault)
		}
		proof, err := evidence.Prove(cmd.Context(), o, seq)
		if evidence.IsFault(err) {
			return cli.No(err)
		}
		if err != nil {
			return cli.BadInput(err)
		}
		p := cli.NewPrinter(cmd.OutOrStdout())
		p.Printf("%s", proof)
		if p.Err != nil {
			return cli.BadInput(fmt.Errorf("write output: %w", p.Err))
		}
		text, _ := standing(query.Reported(verified))
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), inert.Line(text))
		return nil
	}
	return cmd
}
