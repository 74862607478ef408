package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/plain"
	"github.com/pipeguard/pipeguard/internal/audit"
)

// auditReport is the JSON form of the result; its fields are promised to users.
type auditReport struct {
	Schema      string        `json:"schema"` // pipeguard.dev/audit-check/v1
	Consistent  bool          `json:"consistent"`
	Records     int           `json:"records"`
	Sessions    int           `json:"sessions"`
	Intents     int           `json:"intents"`
	Terminals   int           `json:"terminals"`
	Connections int           `json:"connections"`
	Admissions  int           `json:"admissions"`
	Repeated    int           `json:"repeated"`
	TornTail    bool          `json:"tornTail"`
	OpenIntents []auditIntent `json:"openIntents"`
	FaultCount  int           `json:"faultCount"`
	Faults      []auditFault  `json:"faults"`
}

type auditIntent struct {
	Session string `json:"session"`
	Seq     uint64 `json:"seq"`
	ID      string `json:"id"`
}

type auditFault struct {
	Session string `json:"session"`
	Seq     uint64 `json:"seq"`
	ID      string `json:"id"`
	Problem string `json:"problem"`
}

func newAuditCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check that audit records are complete in themselves",
		Long: `Checks that record numbers have no gap, that each session begins where the one before it ended, and that every
intent has exactly one record that ends it. In the file of a running proxy an open intent may be a call in flight,
and a last line without end a record that is being written.

It cannot tell that records were cut off at the end of the file, nor that a record was altered: there are no signatures yet.

With -o json it prints one object:
  schema       "pipeguard.dev/audit-check/v1"
  consistent   true if there are records, no faults, no open intents and no torn tail
  records, sessions, intents, terminals, connections, admissions, repeated    counts
  tornTail     true if the last line has no end: a process is writing it, or died doing so
  openIntents  [{session, seq, id}] in the order of the file
  faultCount   all faults; faults holds at most the first 1000 of them
  faults       [{session, seq, id, problem}]

Exit code: 0 consistent, 2 incomplete, contradictory or unreadable.`,
		Args: argument("a file of records"),
	}
	out := addFormat(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withFile(cmd, args[0], func(r io.Reader) error { return auditCheck(cmd, r, *out) })
	}
	return cmd
}

func auditCheck(cmd *cobra.Command, r io.Reader, out format) error {
	found, err := audit.Reconcile(audit.Read(r))
	if err != nil {
		return badInput(err)
	}
	report := reportOf(found)
	p := printer{w: cmd.OutOrStdout()}
	if out == formatJSON {
		p.json(report)
	} else {
		printReport(&p, report)
	}
	if !report.Consistent {
		return p.done(badInput(nil))
	}
	return p.done(nil)
}

func reportOf(r audit.Report) auditReport {
	report := auditReport{
		Schema:     "pipeguard.dev/audit-check/v1",
		Consistent: r.Records > 0 && r.FaultCount == 0 && len(r.Open) == 0 && !r.TornTail,
		Records:    r.Records, Sessions: r.Sessions, Intents: r.Intents, Terminals: r.Terminals,
		Connections: r.Connections, Admissions: r.Admissions, Repeated: r.Repeated, TornTail: r.TornTail, FaultCount: r.FaultCount,
		OpenIntents: make([]auditIntent, 0, len(r.Open)),
		Faults:      make([]auditFault, 0, len(r.Faults)),
	}
	for _, i := range r.Open {
		report.OpenIntents = append(report.OpenIntents, auditIntent(i))
	}
	for _, f := range r.Faults {
		report.Faults = append(report.Faults, auditFault(f))
	}
	return report
}

func printReport(p *printer, r auditReport) {
	for _, f := range r.Faults {
		p.printf("fault: session %s record %d (id %q): %s\n", plain.Line(f.Session), f.Seq, plain.Line(f.ID), plain.Line(f.Problem))
	}
	if more := r.FaultCount - len(r.Faults); more > 0 {
		p.printf("and %d faults more\n", more)
	}
	for _, i := range r.OpenIntents {
		p.printf("open: session %s record %d (id %q) is an intent that nothing ends\n", plain.Line(i.Session), i.Seq, plain.Line(i.ID))
	}
	if r.TornTail {
		p.printf("open: the last line has no end\n")
	}
	p.printf("%d records in %d sessions: %d intents, %d ends of requests, %d connections, %d admissions, %d repeated after a failed write\n",
		r.Records, r.Sessions, r.Intents, r.Terminals, r.Connections, r.Admissions, r.Repeated)
	switch {
	case r.Consistent:
		p.printf("consistent: no gaps, and every intent has its end\n")
	case r.Records == 0 && r.FaultCount == 0 && !r.TornTail:
		p.printf("incomplete: there are no records\n")
	default:
		p.printf("incomplete: %d faults, %d open intents\n", r.FaultCount, len(r.OpenIntents))
	}
}
