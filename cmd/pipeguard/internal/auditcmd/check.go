package auditcmd

import (
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// auditReport is the JSON form of the result; its fields are promised to users.
type checkReport struct {
	Schema     string `json:"schema"` // pipeguard.dev/audit-check/v1
	Consistent bool   `json:"consistent"`
	audit.Report

	broken  int  // places where the chain of hashes breaks
	isLoose bool // a record does not follow on the one before it
}

func newCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check LOG...",
		Short: "Check that every operation has its intent and its end",
		Long: `Checks that every intent has exactly one record that ends it, and every operation that was let through its intent; and, for logs that
are no directories and cannot be verified, that numbers have no gap and each session begins where the one before it ended. In
the log of a running proxy an open intent may be a call in flight, and a last line without end a record that is being written.

In a log whose records hold the hash of the one before, a record that was changed is a fault too. It does not detect a log that was rewritten
as a whole, or cut off at the end: that is the question of "pipeguard audit verify", which it answers too if it is given keys.

` + aboutLogs + ` Beyond 262,144
requests, a second end of a request that was refused long before is not noticed.

With -o json it prints one object:
  schema       "pipeguard.dev/audit-check/v1"
  consistent   true if there are records, no faults, no open intents and no torn tail
  records, sessions, intents, terminals, connections, admissions, repeated    counts
  unrecorded   ends of operations whose intent was let go, as the log says: its writer was told to continue without a log
  pruned       ends of operations whose intent was removed with the oldest segments, as a LogPrune record says that "audit verify" heeds
  unwritten    requests and connections without a record, as the last records of sessions say: there was no room for them, or no time
  tornTail     true if the last line has no end: a process is writing it, or died doing so
  openIntents  [{session, seq, id}] in the order of the file
  faultCount   all faults; faults holds at most the first 1000 of them, the text 10
  faults       [{session, seq, id, problem}]

Exit code: 0 consistent, 1 the log was changed, 2 unreadable, 3 incomplete or contradictory.`,
		Example: `  pipeguard audit check /var/log/pipeguard/audit`,
		Args:    logs,
	}
	out := cli.AddFormat(cmd)
	trust := addTrust(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in := trust.reading(cmd, nil)
		records, err := in.lines(args...)
		if err != nil {
			return err
		}
		err = check(cmd, records, in.source.PrunedUntil, out)
		for _, bad := range in.silent() {
			in.note(bad)
		}
		return in.done(err)
	}
	return cmd
}

// maxFaults bounds the faults in a report, as audit.Reconcile does.
const maxFaults = 1000

func check(cmd *cobra.Command, records iter.Seq2[query.Record, error], pruned func() (uint64, error), out *cli.Choice) error {
	report, err := reconcile(records, pruned, func(query.Record, error) {})
	if err != nil {
		return cli.BadInput(err)
	}
	p := out.Print(cmd, report, func(p *cli.Printer) { printCheck(p, report) })
	switch {
	case report.broken > 0:
		return p.Done(cli.No(nil))
	case !report.Consistent:
		return p.Done(cli.Incomplete(nil))
	}
	return p.Done(nil)
}

// reconcile checks records, each of which see is called with.
func reconcile(records iter.Seq2[query.Record, error], pruned func() (uint64, error), see func(query.Record, error)) (checkReport, error) {
	report := checkReport{Schema: "pipeguard.dev/audit-check/v1"}
	faults := []audit.Fault{} // a list without entries is one
	found, err := audit.Reconcile(func(yield func(audit.Event, error) bool) {
		for r, err := range records {
			see(r, err)
			report.isLoose = report.isLoose || r.Loose != ""
			if r.IsBroken { // Reconcile finds gaps in numbers
				if report.broken++; report.broken <= maxNamedLines {
					faults = append(faults, audit.Fault{Session: r.Session, Seq: r.Seq, ID: r.ID, Problem: "it or the record before it was changed: " + r.Loose})
				}
			}
			if bad := new(*query.BadLine); errors.As(err, bad) {
				err = &(*bad).LineError
			}
			if !yield(r.Event, err) {
				return
			}
		}
	}, pruned)
	if err != nil {
		return report, err
	}
	faults = append(faults, found.Faults...)
	report.Report = found
	report.FaultCount += report.broken
	report.Open, report.Faults = append([]audit.Intent{}, found.Open...), faults[:min(len(faults), maxFaults)]
	report.Consistent = found.Records > 0 && report.FaultCount == 0 && !report.isLoose && len(found.Open) == 0 && !found.TornTail
	return report, nil
}

// doubt is what speaks against the records of a log that may still be written: nil, or the error with which a command ends.
func (r *checkReport) doubt() error {
	if r.FaultCount == 0 && !r.isLoose {
		return nil
	}
	errs := []error{errors.New("the log is incomplete or contradicts itself, as \"pipeguard audit check\" says")}
	for _, f := range r.Faults[:min(len(r.Faults), maxNamedLines)] {
		errs = append(errs, errors.New(faultText(f)))
	}
	if r.broken > 0 {
		errs[0] = errors.New("the log was changed")
		return cli.No(errors.Join(errs...))
	}
	return cli.Incomplete(errors.Join(errs...))
}

func faultText(f audit.Fault) string {
	return fmt.Sprintf("session %s record %d (id %q): %s", inert.Line(f.Session), f.Seq, inert.Line(f.ID), inert.Line(f.Problem))
}

func printCheck(p *cli.Printer, r checkReport) {
	for _, f := range r.Faults[:min(len(r.Faults), maxNamedLines)] {
		p.Printf("fault: %s\n", faultText(f))
	}
	if more := r.FaultCount - maxNamedLines; more > 0 {
		p.Printf("and %d faults more\n", more)
	}
	for n, i := range r.Open {
		if n == maxNamedLines {
			p.Printf("and %d open intents more\n", len(r.Open)-n)
			break
		}
		p.Printf("open: session %s record %d (id %q) is an intent that nothing ends\n", inert.Line(i.Session), i.Seq, inert.Line(i.ID))
	}
	if r.TornTail {
		p.Printf("open: the last line has no end\n")
	}
	p.Printf("%d records in %d sessions: %d intents, %d ends of requests, %d connections, %d admissions, %d repeated after a failed write\n",
		r.Records, r.Sessions, r.Intents, r.Terminals, r.Connections, r.Admissions, r.Repeated)
	if r.Unrecorded > 0 {
		p.Printf("%d ends have no intent: the log says that it let records go, told to continue\n", r.Unrecorded)
	}
	if r.Pruned > 0 {
		p.Printf("%d ends have an intent that was removed with the oldest segments, as the log says\n", r.Pruned)
	}
	if r.Unwritten > 0 {
		p.Printf("%d requests and connections have no record, as the last records of sessions say\n", r.Unwritten)
	}
	switch {
	case r.Consistent:
		p.Printf("consistent: no gaps, and every intent has its end\n")
	case r.broken > 0:
		p.Printf("tampered: the log was changed: %d faults, %d open intents\n", r.FaultCount, len(r.Open))
	case r.Records == 0 && r.FaultCount == 0 && !r.TornTail:
		p.Printf("incomplete: there are no records\n")
	default:
		p.Printf("incomplete: %d faults, %d open intents\n", r.FaultCount, len(r.Open))
	}
}
