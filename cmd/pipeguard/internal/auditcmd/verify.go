package auditcmd

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

func newVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify DIR | FILE...",
		Short: "Say whether a log was changed: hashes, numbers, signed checkpoints",
		Long: `Reads a log once, on any system, also while it is written or from copies: a directory, or files of one in any order. Records must have
numbers without gaps, each the hash of the one before, and the root of the tree over them must be the one that each
checkpoint was signed with.

  --keys        file of verifier keys: the log's, old ones among them, and of witnesses ("pipeguard keys"). Get it from where the
                log is not: an attacker who changes a log can change a key that lies beside it
  --checkpoint  file of checkpoints that were kept elsewhere: at a witness, in the Event Log, in a collector. Without one, a log that was
                set back together with its own checkpoints cannot be told from one that ends there, so the answer is "incomplete". A file
                that lies in DIR, and one that has nothing but what the log's own file has, must fit and does not count; nor does one that
                no known witness cosigned, if files are named and the log's own "checkpoints" is neither among nor beside them

With files instead of a directory, segments that are missing are named and make the log incomplete; missing from a directory
they are a fault, unless the log says that it pruned them.

With -o json it prints one object:
  schema          "pipeguard.dev/audit-verify/v1"
  verdict         ok, tampered, incomplete
  fault           {file, line, seq, problem}: the first place that does not fit; nothing behind it was looked at
  incomplete      why not everything is proven
  limits          what could have happened unnoticed all the same
  origin, segments, bytes, records, firstSeq, lastSeq, root, ownCovered, outsideCovered, witnessed, witnessedAt, signedAt, checkpoints,
  missing [{first, last}], prunedUntil, void [file], unused [file], tornBytes, ignoredBytes,
  overruled [{file, first, last, by, unsigned}], declared [text]

Exit code: 0 ok, 1 tampered, 2 it cannot be said: the command line or reading failed, 3 incomplete.`,
		Example: `  pipeguard audit verify /var/log/pipeguard/audit --keys node-1.pub --checkpoint from-witness
  pipeguard audit verify audit-*.jsonl checkpoints --keys node-1.pub -o json`,
		Args: cli.Arguments("a directory or files of a log"),
	}
	out := cli.AddFormat(cmd)
	trust := addTrust(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := readVerifierKeys(&trust.o, trust.keys); err != nil {
			return cli.BadInput(err)
		}
		if err := nameLog(&trust.o, args); err != nil {
			return err
		}
		needsWitness(cmd, &trust.o)
		bar := cli.NewProgress(cmd.ErrOrStderr())
		trust.o.Progress = bar.Bytes
		report, err := evidence.Verify(cmd.Context(), trust.o)
		bar.Clear()
		if err != nil {
			return cli.BadInput(err)
		}
		return printVerification(cmd, report, out)
	}
	return cmd
}

// addEvidenceFlags adds the flags that name keys, checkpoints and the origin of a log.
func addEvidenceFlags(cmd *cobra.Command, o *evidence.VerifyOptions, keys *[]string) {
	cmd.Flags().StringArrayVar(keys, "keys", nil, "file of verifier keys of the log and of witnesses; may be repeated")
	cmd.Flags().StringArrayVar(&o.Outside, "checkpoint", nil, "file of checkpoints kept elsewhere; may be repeated")
	cli.Text(cmd, &o.Origin, "origin", "", "name of the expected log, such as pipeguard.dev/audit/node-1; needed if the keys belong to several logs and the log has no checkpoint of its own")
}

// needsWitness sets the default of --require-witness, once the keys are known: with the key of a witness, its cosignature is required.
func needsWitness(cmd *cobra.Command, o *evidence.VerifyOptions) {
	if f := cmd.Flags().Lookup("require-witness"); f != nil && !f.Changed {
		o.RequireWitness = o.Keys.HasWitness()
	}
}

func readVerifierKeys(o *evidence.VerifyOptions, files []string) error {
	for _, file := range files {
		k, err := evidence.ReadKeys(file)
		if err != nil {
			return err
		}
		o.Keys = o.Keys.And(k)
	}
	return nil
}

// nameLog takes one directory, or files.
func nameLog(o *evidence.VerifyOptions, args []string) error {
	info, err := os.Stat(args[0])
	if err != nil {
		return cli.BadInput(err)
	}
	switch {
	case !info.IsDir():
		o.Files = args
	case len(args) > 1:
		return cli.BadInput(fmt.Errorf("takes one directory, or files; %q is too many", args[1]))
	default:
		o.Dir = args[0]
	}
	return nil
}

func printVerification(cmd *cobra.Command, r evidence.Report, out *cli.Choice) error {
	result := cli.Incomplete(nil)
	switch r.Verdict {
	case evidence.VerdictOK:
		result = nil
	case evidence.VerdictTampered:
		result = cli.No(nil)
	}
	return out.Print(cmd, r, func(p *cli.Printer) { printLogVerdict(p, r) }).Done(result)
}

// printLogVerdict prints the verdict first, then the reasons, then its limits.
func printLogVerdict(p *cli.Printer, r evidence.Report) {
	p.Printf("%s: %s\n", r.Verdict, inert.Line(verdictInWords(r)))
	if r.Fault != nil {
		p.Printf("  first place that does not fit: %s\n", inert.Line(r.Fault.Error()))
	}
	for _, why := range r.Incomplete {
		p.Printf("  %s\n", inert.Line(why))
	}
	p.Printf("\n")
	if r.Origin != "" {
		p.Printf("log          %s\n", inert.Line(r.Origin))
	}
	p.Printf("records      %d to %d; segments %d; bytes %d\n", r.FirstSeq, r.LastSeq, r.Segments, r.Bytes)
	if r.Root != "" {
		p.Printf("root         %s\n", r.Root)
	}
	p.Printf("checkpoints  %d fit; own up to record %d, from outside up to record %d\n", r.Checkpoints, r.OwnCovered, r.OutsideCovered)
	if r.Witnessed > 0 {
		p.Printf("witnessed    up to record %d, at %s\n", r.Witnessed, r.WitnessedAt.Format("2006-01-02 15:04:05 UTC"))
	}
	printSome(p, "void", r.Void, "%s: no record in it counts, as the log says")
	printSome(p, "unused", r.Unused, "%s: not read: a process that writes the log has such a file, or left it, or it was planted")
	if r.IgnoredBytes > 0 {
		p.Printf("ignored      %d bytes that are no part of the log and are declared by it: of writes that failed, or added\n", r.IgnoredBytes)
	}
	for i, text := range signedOverrulings(r) {
		if i == maxNamedLines {
			p.Printf("ignored      and more whole records\n")
			break
		}
		p.Printf("ignored      %s\n", inert.Line(text))
	}
	printSome(p, "declared", r.Declared, "by %s")
	p.Printf("\nNot detected by this:\n")
	for _, l := range r.Limits {
		p.Printf("  - %s\n", inert.Line(l))
	}
}

// printSome prints the first of many lines, each with its label.
func printSome(p *cli.Printer, label string, lines []string, form string) {
	for i, line := range lines {
		if i == maxNamedLines {
			p.Printf("%-12s and %d more\n", label, len(lines)-i)
			return
		}
		p.Printf("%-12s "+form+"\n", label, inert.Line(line))
	}
}

// signedOverrulings name the whole records that the log itself declares torn. Those without a signature for that are in Report.Incomplete.
func signedOverrulings(r evidence.Report) (texts []string) {
	for _, o := range r.Overruled {
		if !o.Unsigned {
			texts = append(texts, o.String())
		}
	}
	return texts
}

func verdictInWords(r evidence.Report) string {
	switch r.Verdict {
	case evidence.VerdictOK:
		return "nothing was changed, and checkpoints that were held elsewhere cover every record"
	case evidence.VerdictTampered:
		return "the log was changed"
	}
	return "nothing that does not fit was found, but not everything is proven"
}
